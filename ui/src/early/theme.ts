// Shows the colour theme of the reader's last visit, before anything is drawn.

import { keptChoice } from "../choice.ts";

export const THEME_UNDER = "parley.theme";
export type Theme = "auto" | "light" | "dark";

export function keptTheme(): Theme {
  const text = keptChoice(THEME_UNDER);
  return text === "light" || text === "dark" ? text : "auto";
}

export function showTheme(theme: Theme): void {
  const root = document.documentElement;
  if (theme === "auto") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme);
}
