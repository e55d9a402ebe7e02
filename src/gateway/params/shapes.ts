// Owns the pieces that the methods' params are put together from, and what is said of each method.
// PA3: every param says what it means, and every method what it does: docs/reference is made of it.

import type { Code } from "../../core/errors.ts";
import type { TokenScope } from "../../core/settings.ts";
import type { EventName } from "../protocol.ts";

/** Characters of a key, id, label or name. */
export const NAME_MAX_CHARS = 512;
/** Characters of a message to an agent or a person. */
export const MESSAGE_MAX_CHARS = 1024 * 1024;
/** Characters of a run id that a client makes up. */
const IDEMPOTENCY_KEY_MAX_CHARS = 200;
/** No control characters, and no halves of a character: the store would not give them back as they were. */
const PRINTABLE = "^[^\\p{Cc}\\p{Cs}]*$";

export const flag = { type: "boolean" } as const;
export const name = { type: "string", minLength: 1, maxLength: NAME_MAX_CHARS } as const;
export const nameOrNull = { type: ["string", "null"], minLength: 1, maxLength: NAME_MAX_CHARS } as const;
export const message = { type: "string", minLength: 1, maxLength: MESSAGE_MAX_CHARS } as const;
export const anyObject = { type: "object" } as const;
export const idempotencyKey = {
  description: "Made up by the caller: asked again with it, the method gives its first answer.",
  type: "string",
  minLength: 1,
  maxLength: IDEMPOTENCY_KEY_MAX_CHARS,
  pattern: PRINTABLE,
} as const;
export const threadId = { type: ["string", "number"], maxLength: NAME_MAX_CHARS } as const;

/** A piece with what it means in this place. */
export function about<const S extends object>(schema: S, description: string) {
  return { ...schema, description } as const;
}

/**
 * A whole number. Where a method has a most, it cuts to it: clients of the protocol send large numbers to say
 * "all".
 */
export function count<const Least extends 0 | 1>(least: Least) {
  return { type: "integer", minimum: least } as const;
}

export function object<const P extends object, const R extends readonly (keyof P & string)[]>(
  properties: P,
  required: R,
) {
  return { type: "object", properties, required, additionalProperties: false } as const;
}

export const NOTHING = object({}, []);

export interface MethodSpec {
  /** `node`: for connections of paired nodes, and for them alone. */
  readonly scope: TokenScope | typeof NODE;
  readonly does: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly ignored: readonly string[];
  /** Codes that it answers with besides those that every method may. */
  readonly fails?: readonly Code[];
  /** Events that follow from it. */
  readonly causes?: readonly EventName[];
}

/** What a session that is named may be answered with. */
export const NAMES_SESSION = [
  "invalid_session_key",
  "session_not_found",
  "stale_session_id",
  "not_visible",
] as const satisfies readonly Code[];
/** What a run that is asked for may be answered with. */
export const ASKS_RUN = ["session_archived", "queue_full", "send_denied"] as const satisfies readonly Code[];
/** What is told of a run from its start to its end. */
export const OF_RUNS = ["agent", "chat", "sessions"] as const satisfies readonly EventName[];

/** A session, as every method takes it. */
export const sessionKey = about(name, "Its key or session id; `main` is the default agent's main session.");
export const cursor = about(name, "`nextCursor` of the page before.");

export const NODE = "node";
export const READ = "operator.read";
export const WRITE = "operator.write";
export const ADMIN = "operator.admin";
