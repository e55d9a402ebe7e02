// Owns the colour theme: that of the system, unless the reader has chosen one.

import { signal } from "@preact/signals";
import { keepChoice } from "./choice.ts";
import { keptTheme, showTheme, THEME_UNDER, type Theme } from "./early/theme.ts";

/** The themes in their order, with their names. */
export const THEME_WORDS: Readonly<Record<Theme, string>> = { auto: "system", dark: "dark", light: "light" };

export const theme = signal<Theme>(keptTheme());

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
  keepChoice(THEME_UNDER, to);
  showTheme(to);
}
