// Formats the times of jobs: in the reader's time zone, in the job's time zone, and relative to now.

import { optional } from "../../../../src/core/optional.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../parts/format.ts";

export const READERS_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Formats a time like `Fri, 20 Nov, 07:30`. Adds the year if it is not the current one. */
export function dateWords(atMs: number, nowMs: number, timeZone?: string): string {
  const sameYear = new Date(atMs).getFullYear() === new Date(nowMs).getFullYear();
  return new Date(atMs).toLocaleString(undefined, {
    weekday: "short",
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    ...optional({
      year: sameYear ? undefined : ("numeric" as const),
      second: atMs % MINUTE_MS === 0 ? undefined : ("2-digit" as const),
      timeZone,
    }),
  });
}

/** Formats the time that is left: `now`, `in 40 s`, `in 12 min`, `in 3 h`, `in 5 d`. */
export function aheadWords(atMs: number, nowMs: number): string {
  const ahead = atMs - nowMs;
  if (ahead <= 0) return "now";
  if (ahead < MINUTE_MS) return `in ${Math.ceil(ahead / 1_000)} s`;
  if (ahead < HOUR_MS) return `in ${Math.round(ahead / MINUTE_MS)} min`;
  if (ahead < 2 * DAY_MS) return `in ${Math.round(ahead / HOUR_MS)} h`;
  return `in ${Math.round(ahead / DAY_MS)} d`;
}

/** Formats a time in another time zone. Undefined if the text is the same in the reader's. */
export function elsewhere(atMs: number, nowMs: number, timeZone: string | undefined): string | undefined {
  if (timeZone === undefined || timeZone === READERS_ZONE) return undefined;
  const there = dateWords(atMs, nowMs, timeZone);
  return there === dateWords(atMs, nowMs) ? undefined : `${there} in ${timeZone}`;
}
