// Keeps which items the reader has put off, and until when. The browser stores it: other readers still see
// these items.

import { signal } from "@preact/signals";
import type { AttentionItem } from "../../../src/contract/methods/attention.ts";
import { keepChoice } from "../choice.ts";
import { now, tick } from "../clock.ts";
import { SNOOZES_UNDER, storedSnoozes } from "./stored-snoozes.ts";

const HOUR_MS = 3_600_000;
/** Hour of the day at which items that were put off until tomorrow come back. */
const MORNING = 8;

export const SNOOZES = { hour: "For an hour", tomorrow: "Until tomorrow", week: "For a week" } as const;
export type Snooze = keyof typeof SNOOZES;

const ends = signal(storedSnoozes());

function keep(after: ReadonlyMap<string, number>): void {
  ends.value = after;
  keepChoice(SNOOZES_UNDER, JSON.stringify(Object.fromEntries(after)));
}

function endOf(snooze: Snooze): number {
  const from = now();
  if (snooze === "hour") return from + HOUR_MS;
  if (snooze === "week") return from + 7 * 24 * HOUR_MS;
  const day = new Date(from);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1, MORNING).getTime();
}

/** A permission request is denied when its time ends, so it can't wait. */
export const maySnooze = ({ kind, expiresAt }: AttentionItem): boolean =>
  kind !== "store" && expiresAt === undefined;

export function snooze(items: readonly AttentionItem[], until: Snooze): void {
  const left = [...ends.value].filter(([, end]) => end > now());
  keep(new Map([...left, ...items.filter(maySnooze).map(({ id }) => [id, endOf(until)] as const)]));
}

export function wake(): void {
  keep(new Map());
}

export const isSnoozed = ({ id }: AttentionItem): boolean =>
  (ends.value.get(id) ?? 0) > Math.max(tick.value, now());
