// Maps key presses to actions in the session list, in the usual way for trees on web pages.

import type { ForestLine } from "./forest.ts";

/** Action for a key press. */
type Deed =
  | { readonly kind: "move"; readonly at: number }
  | { readonly kind: "turn"; readonly open: boolean }
  | { readonly kind: "choose" };

/**
 * Returns the row that is nearest to `at` in direction `step`. If there is none, searches in the other
 * direction.
 */
function rowNear(lines: readonly ForestLine[], at: number, step: 1 | -1): number | undefined {
  const last = lines.length - 1;
  const from = Math.min(Math.max(at, 0), last);
  for (let index = from; index >= 0 && index <= last; index += step) {
    if (lines[index]?.kind === "row") return index;
  }
  for (let index = from; index >= 0 && index <= last; index -= step) {
    if (lines[index]?.kind === "row") return index;
  }
  return undefined;
}

/**
 * Returns the action for a key press, or undefined if there is none. `at` is the active row, and `pageRows`
 * the number of visible rows.
 */
export function deedOf(
  key: string,
  lines: readonly ForestLine[],
  at: number,
  pageRows: number,
): Deed | undefined {
  const line = lines[at];
  if (line?.kind !== "row") return undefined;
  const move = (to: number, step: 1 | -1): Deed => ({ kind: "move", at: rowNear(lines, to, step) ?? at });
  switch (key) {
    case "ArrowDown":
      return move(at + 1, 1);
    case "ArrowUp":
      return move(at - 1, -1);
    case "PageDown":
      return move(at + pageRows, 1);
    case "PageUp":
      return move(at - pageRows, -1);
    case "Home":
      return move(0, 1);
    case "End":
      return move(lines.length - 1, -1);
    case "ArrowRight": {
      if (line.open === undefined) return { kind: "move", at };
      if (!line.open) return { kind: "turn", open: true };
      const below = lines[at + 1];
      return { kind: "move", at: below?.kind === "row" && below.parent === line.key ? at + 1 : at };
    }
    case "ArrowLeft": {
      if (line.open === true) return { kind: "turn", open: false };
      const above = lines.findIndex((one) => one.kind === "row" && one.key === line.parent);
      return { kind: "move", at: above === -1 ? at : above };
    }
    case "Enter":
    case " ":
      return { kind: "choose" };
    default:
      return undefined;
  }
}
