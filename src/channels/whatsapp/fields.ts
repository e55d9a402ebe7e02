// Owns how texts are read of what the platform says: each may be missing, or of any kind.

/**
 * The text that this is, without what no store keeps: halves of characters, and character 0. An empty one if
 * it is none.
 */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value.toWellFormed().replaceAll("\0", "") : "";
}
