// Owns how what a Bot API server says is looked into: nothing of it is believed to have a shape.

/** An object of JSON, whatever it holds. */
export type Fields = Readonly<Record<string, unknown>>;

/** The object that a value is; nothing at all if it is none. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A whole number that JSON could carry without loss. */
export function numberOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

/** The number that names a chat, a user or a message, as text. */
export function idOf(value: unknown): string | undefined {
  const id = numberOf(value);
  return id === undefined || id === 0 ? undefined : String(id);
}
