import { useEffect, useState } from "react";
import { texts } from "../../texts.ts";
import { applyTheme, chosenTheme, themes, toTheme } from "./theme.ts";

export function ThemeChoice() {
  const [theme, setTheme] = useState(chosenTheme);
  useEffect(() => {
    localStorage.setItem("theme", theme);
    applyTheme(theme);
  }, [theme]);
  return (
    <label className="soft">
      <span className="visually-hidden">{texts.shell.theme}</span>
      <select value={theme} onChange={(event) => setTheme(toTheme(event.target.value))}>
        {themes.map((one) => (
          <option key={one} value={one}>
            {texts.shell.themes[one]}
          </option>
        ))}
      </select>
    </label>
  );
}
