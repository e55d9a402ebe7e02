// Reads which items the reader has put off.

import { keptChoice } from "../choice.ts";

export const SNOOZES_UNDER = "parley.snoozed";

/** Returns the end of each snooze in ms since 1970, by the item's id. */
export function storedSnoozes(): ReadonlyMap<string, number> {
  try {
    return new Map(Object.entries<number>(JSON.parse(keptChoice(SNOOZES_UNDER) ?? "{}")));
  } catch {
    return new Map();
  }
}
