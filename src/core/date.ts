// Parses dates that people, models and programs write.

/** Parses a date as `Date.parse` does, but returns NaN for a day such as 30 February, which that shifts. */
export function parseDate(text: string): number {
  const day = /^\d{4}-\d{2}-\d{2}/.exec(text)?.[0];
  const midnight = Date.parse(`${day}T00:00Z`);
  const exists =
    day === undefined || (!Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(day));
  return exists ? Date.parse(text) : Number.NaN;
}
