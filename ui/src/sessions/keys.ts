// Decides what the keys do in the session list, in the usual way for trees on web pages.

import { type ActionOf, stepOf } from "../keys/table.ts";
import type { ForestLine } from "./forest.ts";

type Deed =
  | { readonly kind: "move"; readonly at: number }
  | { readonly kind: "turn"; readonly open: boolean }
  | { readonly kind: "choose" };

/** Returns the row next to `at` in this direction, or else in the other one. */
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

/** `at`: the active row. `pageRows`: the number of visible rows. */
export function deedOf(
  action: ActionOf<"rows"> | undefined,
  lines: readonly ForestLine[],
  at: number,
  pageRows: number,
): Deed | undefined {
  const line = lines[at];
  if (line?.kind !== "row") return undefined;
  const by = stepOf(action, pageRows);
  if (by !== undefined) return { kind: "move", at: rowNear(lines, at + by, by > 0 ? 1 : -1) ?? at };
  switch (action) {
    case "open": {
      if (line.open === undefined) return { kind: "move", at };
      if (!line.open) return { kind: "turn", open: true };
      const below = lines[at + 1];
      return { kind: "move", at: below?.kind === "row" && below.parent === line.key ? at + 1 : at };
    }
    case "close": {
      if (line.open === true) return { kind: "turn", open: false };
      const above = lines.findIndex((one) => one.kind === "row" && one.key === line.parent);
      return { kind: "move", at: above === -1 ? at : above };
    }
    case "choose":
      return { kind: "choose" };
    default:
      return undefined;
  }
}
