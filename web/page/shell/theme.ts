export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** The theme chosen in this browser, else the system's. */
export function chosenTheme(): Theme {
  return toTheme(localStorage.getItem("theme"));
}

export function toTheme(name: string | null): Theme {
  return themes.find((one) => one === name) ?? "auto";
}

/** Sets the attribute that the style sheets follow; without it they follow the system. */
export function applyTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}
