// Owns the colour theme: that of the system, unless the reader has chosen one.

import { signal } from "@preact/signals";
import { keepChoice, keptChoice } from "./choice.ts";

const STORED_UNDER = "parley.theme";
type Theme = "auto" | "light" | "dark";

/** The themes in their order, with their names. */
export const THEME_WORDS: Readonly<Record<Theme, string>> = { auto: "system", dark: "dark", light: "light" };

function stored(): Theme {
  const text = keptChoice(STORED_UNDER);
  return text === "light" || text === "dark" ? text : "auto";
}

export const theme = signal<Theme>(stored());

function show(): void {
  const root = document.documentElement;
  if (theme.value === "auto") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme.value);
}

/** Returns the theme after the current one: first the opposite of the system's, then the same as it. */
function next(): Theme {
  const [same, opposite]: Theme[] = window.matchMedia("(prefers-color-scheme: dark)").matches
    ? ["dark", "light"]
    : ["light", "dark"];
  return theme.value === "auto" ? (opposite ?? "auto") : theme.value === opposite ? (same ?? "auto") : "auto";
}

/** Switches to another theme, without `to` to the next one. */
export function turnTheme(to: Theme = next()): void {
  theme.value = to;
  keepChoice(STORED_UNDER, to);
  show();
}

show();
