// Decides what the keys do in the session list, in the usual way for trees on web pages.

import { type ActionOf, stepOf } from "../keys/table.ts";
import type { ForestLine } from "./forest.ts";

type Deed =
  | { readonly kind: "move"; readonly at: number }
  | { readonly kind: "turn"; readonly open: boolean }
  | { readonly kind: "choose" };

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
  if (by !== undefined) {
    const rows = lines.flatMap(({ kind }, index) => (kind === "row" ? index : []));
    const near = by > 0 ? rows.find((row) => row >= at + by) : rows.findLast((row) => row <= at + by);
    return { kind: "move", at: near ?? rows.at(by > 0 ? -1 : 0) ?? at };
  }
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
