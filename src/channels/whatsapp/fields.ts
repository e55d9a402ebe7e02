// Owns reading texts from the platform's untrusted data.

/**
 * Returns the text without lone surrogates and NUL characters, which no store accepts; empty if it is none.
 */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value.toWellFormed().replaceAll("\0", "") : "";
}
