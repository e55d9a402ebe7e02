// Owns reading numbers from a Bot API server's answers.

/** Returns the value if it is a safe integer. */
export function numberOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

/** Returns the id of a chat, a user or a message as text. */
export function idOf(value: unknown): string | undefined {
  const id = numberOf(value);
  return id === undefined || id === 0 ? undefined : String(id);
}
