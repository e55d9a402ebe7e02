// Owns what keys do in the session list, as in any tree of the web: up and down, in and out, and choose.

import type { Line } from "./forest.ts";

/** What a key asks for. */
type Deed =
  | { readonly kind: "move"; readonly at: number }
  | { readonly kind: "turn"; readonly open: boolean }
  | { readonly kind: "choose" };

/** The row nearest to `at`, going on in direction `step` and back at the end. */
function rowNear(lines: readonly Line[], at: number, step: 1 | -1): number | undefined {
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

/** `at`: the active row. `pageRows`: rows in sight. Undefined: the key means nothing here. */
export function deedOf(key: string, lines: readonly Line[], at: number, pageRows: number): Deed | undefined {
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
