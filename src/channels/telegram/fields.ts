// Owns how numbers are read of what a Bot API server says.

/** A whole number that JSON could carry without loss. */
export function numberOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

/** The number that names a chat, a user or a message, as text. */
export function idOf(value: unknown): string | undefined {
  const id = numberOf(value);
  return id === undefined || id === 0 ? undefined : String(id);
}
