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
export const TRIED = [PERIODS[1], PERIODS[2], PERIODS[3], PERIODS[4]] as const;

const STATES = ["running", "failed"] as const;

export interface Wish {
  /** "": the shortest of `TRIED` that has a chain. `dates`: from `from` to `to`. */
  readonly period: (typeof PERIODS)[number]["id"] | "dates" | "";
  /** Days as `2026-11-29`, both included. Empty: no limit. */
  readonly from: string;
  readonly to: string;
  readonly search: string;
  readonly agentId: string;
  readonly state: (typeof STATES)[number] | "";
}

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

export const wish = computed((): Wish => {
  const params = new URLSearchParams(queries.flow.value);
  const get = (name: string): string => params.get(name) ?? "";
  const [from, to] = [get("from"), get("to")].map((day) => (isDay(day) ? day : ""));
  const named = [...PERIODS.map(({ id }) => id), "dates" as const].find((id) => id === get("period"));
  return {
    ...{ period: named ?? "", from: from ?? "", to: to ?? "" },
    ...{ search: get("search"), agentId: get("agent") },
    state: STATES.find((state) => state === get("state")) ?? "",
  };
});

export function want(change: Partial<Wish>): void {
  const { period, from, to, search, agentId, state } = { ...wish.value, ...change };
  const days = period === "dates" ? { from, to } : {};
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries({ period, ...days, search, agent: agentId, state }))
    if (value !== "") params.set(name, value);
  filter("flow", params.toString());
}

/** Returns the chosen days in ms since 1970: from the start of the earlier one to the end of the later. */
export function daysOf({ from, to }: Wish): { readonly from: number; readonly to?: number } {
  const [first = "", last = ""] = to === "" ? [from] : [from, to].sort();
  const start = first === "" ? 0 : new Date(`${first}T00:00`).getTime();
  return last === "" ? { from: start } : { from: start, to: new Date(`${last}T23:59:59.999`).getTime() };
}
