export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

/** As it was chosen in this browser; as the system has it when nobody chose. */
export function chosenTheme(): Theme {
  return toTheme(localStorage.getItem("theme"));
}

export function toTheme(name: string | null): Theme {
  return themes.find((one) => one === name) ?? "auto";
}

/** Style sheets follow the attribute, or the system where there is none. */
export function applyTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}
