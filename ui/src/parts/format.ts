// Formats values for the page: ages, durations, tokens, money, sizes, times.

import { describeFailure } from "../setup/failed-run.ts";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
/** Age from which a time is shown as a date. */
const DATED_MS = 30 * DAY_MS;

/** Formats an age: `now`, `12 s`, `5 min`, `3 h`, `4 d`; later the date. */
export function age(atMs: number, nowMs: number): string {
  const passed = Math.max(0, nowMs - atMs);
  if (passed < 5_000) return "now";
  if (passed < MINUTE_MS) return `${Math.floor(passed / 1000)} s`;
  if (passed < HOUR_MS) return `${Math.floor(passed / MINUTE_MS)} min`;
  if (passed < DAY_MS) return `${Math.floor(passed / HOUR_MS)} h`;
  if (passed < DATED_MS) return `${Math.floor(passed / DAY_MS)} d`;
  return new Date(atMs).toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** Formats an age within a sentence: `just now`, `12 s ago`; later the date. */
export function ago(atMs: number, nowMs: number): string {
  const words = age(atMs, nowMs);
  if (words === "now") return "just now";
  return nowMs - atMs < DATED_MS ? `${words} ago` : words;
}

/** Formats the last failure of a session: `failed 2 min ago: invalid key`. */
export function failureWords(
  { endedAt, code, reason = code }: { endedAt: number; code: string; reason?: string | undefined },
  nowMs: number,
): string {
  return `failed ${ago(endedAt, nowMs)}: ${describeFailure(code, reason)}`;
}

function twoDigits(count: number): string {
  return String(count).padStart(2, "0");
}

/** Formats a duration: `340 ms`, `2.1 s`, `3 min 05 s`, `2 h 10 min`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < MINUTE_MS) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < HOUR_MS)
    return `${Math.floor(ms / MINUTE_MS)} min ${twoDigits(Math.floor((ms % MINUTE_MS) / 1000))} s`;
  return `${Math.floor(ms / HOUR_MS)} h ${twoDigits(Math.floor((ms % HOUR_MS) / MINUTE_MS))} min`;
}

/** Formats a number of tokens: `950`, `12.3k`, `4.56M`. */
export function tokens(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 1_000_000) return `${(count / 1_000).toFixed(count < 100_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(2)}M`;
}

/** Formats an amount in USD: `$0`, `<$0.01`, `$1.23`. */
export function money(usd: number): string {
  if (usd === 0) return "$0";
  return usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

const EXACT_USD = new Intl.NumberFormat("en", {
  style: "currency",
  currency: "USD",
  maximumFractionDigits: 6,
});
/** Formats an amount in USD in full: `$0.0042`, `$1.23`. */
export const exactMoney = (usd: number): string => EXACT_USD.format(usd);

/** How figures of these kinds are written, short and in full, and the unit that follows. */
export const FIGURES = {
  cost: { write: money, writeFull: exactMoney, unit: "" },
  tokens: { write: tokens, writeFull: (count: number) => count.toLocaleString(), unit: " tokens" },
} as const;

/** Formats a size: `812 B`, `14 kB`, `3.4 MB`. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Formats a time of day. `date`: true to add the day. */
export function clockTime(atMs: number, date = false): string {
  return new Date(atMs).toLocaleString(undefined, {
    ...(date ? { dateStyle: "medium" } : {}),
    timeStyle: "medium",
  });
}

/** Formats a number with its noun: `1 session`, `2 sessions`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;
}
