// Parses durations ("15m", "2h 30m") and dates of the command line. All functions are pure.

const UNITS: Readonly<Record<string, number>> = {
  s: 1_000,
  sec: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses `15m`, `2h30m` or `90 s` to milliseconds. Returns undefined if the text is not a duration. */
export function readDuration(text: string): number | undefined {
  const parts = [
    ...text
      .trim()
      .toLowerCase()
      .matchAll(/(\d+)\s*([a-z]+)\s*/gy),
  ];
  const whole = parts.map(([part]) => part).join("");
  if (parts.length === 0 || whole.trim() !== text.trim().toLowerCase()) return undefined;
  let ms = 0;
  for (const [, number, unit = ""] of parts) {
    const size = UNITS[unit];
    if (size === undefined) return undefined;
    ms += Number(number) * size;
  }
  return ms;
}

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
  const ms = Date.parse(whole);
  return Number.isNaN(ms) ? undefined : ms;
}
