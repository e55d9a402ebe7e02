// Owns reading texts from the platform's untrusted data.

/**
 * Removes lone surrogates and NUL characters, which no store accepts. Returns an empty text if the value is
 * not a string.
 */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value.toWellFormed().replaceAll("\0", "") : "";
}
