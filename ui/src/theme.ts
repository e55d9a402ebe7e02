// Owns the colour theme: that of the system, unless the reader has chosen another.

import { signal } from "@preact/signals";

const STORED_UNDER = "parley.theme";
type Theme = "auto" | "light" | "dark";

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

/** Switches to the next of the three themes. */
export function turnTheme(): void {
  theme.value = theme.value === "auto" ? "dark" : theme.value === "dark" ? "light" : "auto";
  try {
    window.localStorage.setItem(STORED_UNDER, theme.value);
  } catch {
    // Without storage, the choice is lost when the page is closed.
  }
  show();
}

show();
