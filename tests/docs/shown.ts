// Compares the output in a document with the output of the program. SH1: ids, times, sizes and numbers of
// three or more digits may differ; every other word must match. SH2: "…" matches anything within a line; a
// line with only "…" matches any lines.

const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/g, "<id>"],
  [/\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b/g, "<id>"],
  [/\b[A-Z2-9]{8}\b/g, "<code>"],
  [/\b\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?/g, "<date>"],
  [/\b\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d\b/g, "<date>"],
  [/\b(?:just now|\d+ (?:s|min|h|d) ago)/g, "<ago>"],
  [/\b[\d.]+ ?(?:kB|MB|GB|TB)\b/g, "<size>"],
  [/\b\d+\.\d+ ?s\b/g, "<seconds>"],
  [/\b\d[\d,.]{2,}\b/g, "<n>"],
  [/[\u2500-\u257f]{4,}/g, "<rule>"],
];

function plain(line: string): string {
  return VARYING.reduce((text, [pattern, name]) => text.replace(pattern, name), line)
    .replace(/\s+/g, " ")
    .trimEnd();
}

function fits(wanted: string, line: string): boolean {
  const pattern = plain(wanted)
    .split("…")
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join(".*");
  return new RegExp(`^${pattern}$`).test(plain(line)) || plain(wanted) === plain(line);
}

/**
 * Returns the first line of the document that the output does not contain, or undefined if it contains all.
 */
export function mismatch(shown: readonly string[], output: string): string | undefined {
  const lines = output.trimEnd().split("\n");
  // Positions in the output at which the next line of the document may match.
  let places = new Set([0]);
  for (const wanted of shown) {
    const next = new Set<number>();
    if (wanted.trim() === "…") for (let at = Math.min(...places); at <= lines.length; at += 1) next.add(at);
    else for (const at of places) if (at < lines.length && fits(wanted, lines[at] ?? "")) next.add(at + 1);
    if (next.size === 0) return `not there, or not in this place: ${wanted}`;
    places = next;
  }
  return places.has(lines.length)
    ? undefined
    : `shown to its end, but it goes on: ${lines.at(Math.min(...places))}`;
}
