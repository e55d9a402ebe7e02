// Owns the schemas that the methods' params consist of, and the type of a method's definition.
// Every param and every method has a description: docs/reference is generated from them.

import type { Code } from "../../core/errors.ts";
import type { TokenScope } from "../../core/settings.ts";
import type { EventName } from "../protocol.ts";

/** Characters of a key, id, label or name. */
export const NAME_MAX_CHARS = 512;
/** Characters of a message to an agent or a person. */
export const MESSAGE_MAX_CHARS = 1024 * 1024;
/** Characters of a client's run id. */
const IDEMPOTENCY_KEY_MAX_CHARS = 200;
/** No control characters, and no unpaired surrogates: the store would not return them unchanged. */
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

/** Adds a description to a schema. */
export function about<const S extends object>(schema: S, description: string) {
  return { ...schema, description } as const;
}

/**
 * A whole number. A method with a maximum cuts to it: clients of the protocol send large numbers for "all".
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
  /** `node`: only for connections of paired nodes. */
  readonly scope: TokenScope | typeof NODE;
  readonly does: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly ignored: readonly string[];
  /** Error codes of the method, besides the common ones. */
  readonly fails?: readonly Code[];
  /** Events that it causes. */
  readonly causes?: readonly EventName[];
}

/** Error codes of methods that take a session. */
export const NAMES_SESSION = [
  "invalid_session_key",
  "session_not_found",
  "stale_session_id",
  "not_visible",
] as const satisfies readonly Code[];
/** Error codes of methods that start a run. */
export const ASKS_RUN = ["session_archived", "queue_full", "send_denied"] as const satisfies readonly Code[];
/** Events of a run from its start to its end. */
export const OF_RUNS = ["agent", "chat", "sessions"] as const satisfies readonly EventName[];

/** A session, as every method takes it. */
export const sessionKey = about(name, "Its key or session id; `main` is the default agent's main session.");
export const cursor = about(name, "`nextCursor` of the page before.");

export const NODE = "node";
export const READ = "operator.read";
export const WRITE = "operator.write";
export const ADMIN = "operator.admin";
