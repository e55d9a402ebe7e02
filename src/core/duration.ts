// Parses durations as people and models write them: "15m", "2h 30m", "1 hour and 30 minutes".

const UNITS: readonly (readonly [words: RegExp, ms: number])[] = [
  [/^s(?:ecs?|econds?)?$/, 1_000],
  [/^m(?:ins?|inutes?)?$/, 60_000],
  [/^h(?:rs?|ours?)?$/, 3_600_000],
  [/^d(?:ays?)?$/, 86_400_000],
  [/^w(?:eeks?)?$/, 7 * 86_400_000],
];

/** Parses a duration to milliseconds. Returns undefined if the text is not a duration. */
export function readDuration(text: string): number | undefined {
  const words = text.trim().toLowerCase();
  const parts = [...words.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)(?:\s*,\s*|\s+and\s+|\s*)/gy)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== words) return undefined;
  let ms = 0;
  for (const [, number, unit = ""] of parts) {
    const size = UNITS.find(([known]) => known.test(unit))?.[1];
    if (size === undefined) return undefined;
    ms += Number(number) * size;
  }
  return Math.round(ms);
}
