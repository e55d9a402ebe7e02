// Owns how what a platform says is looked into: nothing of it is believed to have a shape.

/** An object of JSON, whatever it holds. */
export type Fields = Readonly<Record<string, unknown>>;

/** The object that a value is; nothing at all if it is none. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The objects of a list, at most so many. */
export function objectsOf(value: unknown, max: number): readonly Fields[] {
  return Array.isArray(value) ? value.slice(0, max).map(fieldsOf) : [];
}

/** A text that is not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A whole number from 0 that JSON could carry without loss. */
export function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

/** What a text says as JSON; undefined: it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
