// Reads text from the platform's untrusted data.

/**
 * Returns a text without unpaired surrogates and NUL characters, which no store accepts. Returns "" if the
 * value is not a string.
 */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value.toWellFormed().replaceAll("\0", "") : "";
}
