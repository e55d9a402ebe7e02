// Describes the JSON result of a tool in words, for people.

/** Fields that hold the text of a result, the most telling first. */
const TEXTS = ["error", "reply", "output", "text", "content"];

/** Returns the text of a result, or else its facts: `exitCode 0, durationMs 60`. */
export function resultWords(result: Readonly<Record<string, unknown>>): string {
  const name = TEXTS.find((field) => typeof result[field] === "string" && result[field] !== "");
  if (name === "error" && typeof result.code === "string") return `${result.code}: ${result.error}`;
  if (name !== undefined) return String(result[name]).trimEnd();
  const facts = Object.entries(result).flatMap(([fact, value]) => {
    if (Array.isArray(value)) return [`${fact} ${value.length}`];
    return typeof value === "object" || value === false || value === "" ? [] : [`${fact} ${String(value)}`];
  });
  return facts.join(", ");
}
