// Parses dates of the command line.

import { parseDate } from "../../core/date.ts";

/**
 * Parses an ISO 8601 date or a Unix time in ms, and returns a Unix time in ms. A date without an offset is in
 * local time. Returns undefined if the text is invalid.
 */
export function readDate(text: string): number | undefined {
  if (/^\d{10,15}$/.test(text)) return Number(text);
  if (!/^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:?\d{2})?)?$/.test(text))
    return undefined;
  // Add a time, because Date.parse would read a date without a time as UTC.
  const whole = /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00` : text.replace(" ", "T");
  const ms = parseDate(whole);
  return Number.isNaN(ms) ? undefined : ms;
}
