// Puts failures of one cause together, so that they are one row of the inbox. Pure.

import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { providerIn } from "../setup/failed-run.ts";
import { summaryOf } from "./marks.ts";

/** Number of failures of one cause that become one row. */
const TOGETHER_MIN = 3;
const NAMED_MAX = 3;
const DEEDS = ["retry", "dismiss"] as const;

/** Items of one row, the newest first. The id identifies the row. */
export interface Entry {
  readonly id: string;
  readonly items: readonly [AttentionItem, ...AttentionItem[]];
}

/** Returns the cause of a failure that can be retried. Numbers in its text differ from case to case. */
function causeOf(item: AttentionItem): string {
  const { id, kind, code = "", model = "", actions } = item;
  if (!actions.includes("retry")) return id;
  // Each provider has a key of its own.
  const provider = code === "model_unauthorized" ? providerIn(model) : "";
  return `${kind} ${code} ${provider} ${summaryOf(item).replace(/\d+/g, "0")}`;
}

/** Returns the rows of a group. Failures of one cause stand in the place of the newest of them. */
export function entriesOf(items: readonly AttentionItem[]): readonly Entry[] {
  const causes = Map.groupBy(items, causeOf);
  return items.flatMap((item): Entry[] => {
    const cause = causeOf(item);
    const [first = item, ...others] = causes.get(cause) ?? [];
    if (others.length + 1 < TOGETHER_MIN) return [{ id: item.id, items: [item] }];
    return first === item ? [{ id: cause, items: [first, ...others] }] : [];
  });
}

export const deedsForAll = (items: readonly AttentionItem[]): readonly (typeof DEEDS)[number][] =>
  DEEDS.filter((deed) => items.every(({ actions }) => actions.includes(deed)));

/** Returns the first of these names, and the number of the others. */
export function namesIn(names: readonly string[]): string {
  const all = [...new Set(names)];
  const others = all.length - NAMED_MAX;
  return [...all.slice(0, NAMED_MAX), ...(others > 0 ? [`${others} more`] : [])].join(", ");
}
