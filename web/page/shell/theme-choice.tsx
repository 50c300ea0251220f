import { useEffect, useState } from "react";
import { texts } from "../../texts.ts";

const themes = ["auto", "light", "dark"] as const;
type Theme = (typeof themes)[number];

export function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(() => themes.find((one) => one === localStorage.getItem("theme")) ?? "auto");
  useEffect(() => {
    localStorage.setItem("theme", theme);
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return (
    <label className="soft">
      <span className="visually-hidden">{texts.shell.theme}</span>
      <select value={theme} onChange={(event) => setTheme(themes.find((one) => one === event.target.value) ?? "auto")}>
        {themes.map((one) => (
          <option key={one} value={one}>
            {texts.shell.themes[one]}
          </option>
        ))}
      </select>
    </label>
  );
}
