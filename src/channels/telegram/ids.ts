// Reads the ids of a Bot API server's answers.

import { integerOf } from "../../core/json.ts";

/** Returns the id of a chat, a user or a message as text. */
export function idOf(value: unknown): string | undefined {
  const id = integerOf(value);
  return id === undefined || id === 0 ? undefined : String(id);
}
