// Shortens two texts to where they differ.

const CONTEXT_CHARS = 80;

/** Returns the parts of two texts that begin shortly before their first difference. */
export function fromDifference(expected: string, got: string, max: number): readonly [string, string] {
  let at = 0;
  while (at < expected.length && expected[at] === got[at]) at += 1;
  const from = Math.max(0, at - Math.min(CONTEXT_CHARS, max >> 2));
  const part = (text: string): string => {
    const shown = text.slice(from, from + max);
    return `${from > 0 ? "…" : ""}${shown}${from + max < text.length ? "…" : ""}`;
  };
  return [part(expected), part(got)];
}
