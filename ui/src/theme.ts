// Owns the colour theme: that of the system, unless the reader has chosen one.

import { signal } from "@preact/signals";

const STORED_UNDER = "parley.theme";
type Theme = "auto" | "light" | "dark";

/** The themes in their order, with their names. */
export const THEME_WORDS: Readonly<Record<Theme, string>> = { auto: "system", dark: "dark", light: "light" };

function stored(): Theme {
  try {
    const text = window.localStorage.getItem(STORED_UNDER);
    return text === "light" || text === "dark" ? text : "auto";
  } catch {
    return "auto";
  }
}

export const theme = signal<Theme>(stored());

function show(): void {
  const root = document.documentElement;
  if (theme.value === "auto") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme.value);
}

/** Switches to another theme, without `to` to the next one. */
export function turnTheme(
  to: Theme = theme.value === "auto" ? "dark" : theme.value === "dark" ? "light" : "auto",
): void {
  theme.value = to;
  try {
    window.localStorage.setItem(STORED_UNDER, theme.value);
  } catch {
    // The browser has no storage: the choice is lost when the page is closed.
  }
  show();
}

show();
