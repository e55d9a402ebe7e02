// Owns the reader's choices for the list of chains (period, search, filters), which the address contains.
// Unknown values in an address are ignored.

import { computed } from "@preact/signals";
import { filter, queries } from "../route.ts";

const DAY_MINUTES = 24 * 60;

export const PERIODS = [
  { id: "15m", minutes: 15, name: "15 min" },
  { id: "1h", minutes: 60, name: "1 hour" },
  { id: "24h", minutes: DAY_MINUTES, name: "24 hours" },
  { id: "7d", minutes: 7 * DAY_MINUTES, name: "7 days" },
  { id: "30d", minutes: 30 * DAY_MINUTES, name: "30 days" },
] as const;

/** Periods that are tried one after the other if the reader has chosen none. */
export const TRIED = PERIODS.slice(1);

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

/** The choices, by their names in the address. Empty: none. */
export const wish = computed(() => {
  const params = new URLSearchParams(queries.flow.value);
  const [from = "", to = ""] = ["from", "to"].map((name) => params.get(name) ?? "");
  return {
    /** "": the shortest of `TRIED` that has a chain. `dates`: from `from` to `to`. */
    period:
      [...PERIODS.map(({ id }) => id), "dates" as const].find((id) => id === params.get("period")) ??
      ("" as const),
    /** Days as `2026-11-29`, both included. */
    from: isDay(from) ? from : "",
    to: isDay(to) ? to : "",
    search: params.get("search") ?? "",
    agent: params.get("agent") ?? "",
    state: (["running", "failed"] as const).find((state) => state === params.get("state")) ?? ("" as const),
  };
});

type Wish = typeof wish.value;

export function want(change: Partial<Wish>): void {
  const { from, to, ...others } = { ...wish.value, ...change };
  const { period, ...rest } = others;
  const all = period === "dates" ? { period, from, to, ...rest } : others;
  filter("flow", new URLSearchParams(Object.entries(all).filter(([, value]) => value !== "")).toString());
}

/** Returns the chosen days in ms since 1970: from the start of the earlier one to the end of the later. */
export function daysOf({ from, to }: Wish): { readonly from: number; readonly to?: number } {
  const [first = "", last = ""] = to === "" ? [from] : [from, to].sort();
  const start = first === "" ? 0 : new Date(`${first}T00:00`).getTime();
  return last === "" ? { from: start } : { from: start, to: new Date(`${last}T23:59:59.999`).getTime() };
}
