// Defines the schemas that several methods share, and the type of a method's entry.
// Every param and every method has a description, because docs/reference is generated from them.

import type { AdminPart } from "../../core/rules/scopes.ts";
import type { Code } from "../../core/shapes/errors.ts";
import type { TokenScope } from "../../core/shapes/settings/settings.ts";
import { about, integer, nullable, type ObjectSchema, object, oneOf, type Schema, text } from "../schema.ts";

/** Maximum number of characters in a key, id, label or name. */
export const NAME_MAX_CHARS = 512;
/** Maximum number of characters in a message to an agent or a person. */
export const MESSAGE_MAX_CHARS = 1024 * 1024;
/** Maximum number of characters in an idempotency key. */
const IDEMPOTENCY_KEY_MAX_CHARS = 200;
/** Excludes control characters and unpaired surrogates: the store would not return them unchanged. */
const PRINTABLE = "^[^\\p{Cc}\\p{Cs}]*$";

export const name = text(undefined, { minLength: 1, maxLength: NAME_MAX_CHARS });
export const nameOrNull = nullable(name);
export const message = text(undefined, { minLength: 1, maxLength: MESSAGE_MAX_CHARS });
export const idempotencyKey = text(
  "Unique key from the caller. A retry with the same key gets the same answer.",
  { minLength: 1, maxLength: IDEMPOTENCY_KEY_MAX_CHARS, pattern: PRINTABLE },
);
/** The id of a thread. Some platforms use numbers, others names. */
export const threadId = {
  ...text(undefined, { maxLength: NAME_MAX_CHARS }),
  type: ["string", "number"],
} as Schema as Schema<string | number>;

/**
 * A number of items to return. It has no maximum here: clients send large numbers for "all", and a method
 * cuts the number to its own maximum.
 */
export function count(least: 0 | 1): Schema<number> {
  return integer(undefined, { minimum: least });
}

/** Present while a person holds a run. */
export const HOLD = about(
  oneOf("pending", "held"),
  "Present while a person holds the run (`runs.hold`). `pending`: it stops before its next tool call. " +
    "`held`: it has stopped.",
);

export const NOTHING = object({});

/** The entry of a method of the protocol. Its callers, its handler and the documentation use it. */
export interface MethodSpec {
  /** `node`: only for connections of paired nodes. */
  readonly scope: TokenScope | typeof NODE;
  /** A part of the scope `operator.admin` that is enough for this method. */
  readonly part?: AdminPart;
  /** Only for tokens that cover every session. */
  readonly everySession?: true;
  /** May take a long time, so it does not hold up other requests of its connection. */
  readonly takesLong?: true;
  /**
   * Set if the method's effect keeps the rights of the caller's token after the token ends. Access tokens may
   * not call such methods.
   */
  readonly outlivesToken?: true;
  /** One sentence for the documentation. */
  readonly summary: string;
  readonly params: ObjectSchema;
  /** The payload of the answer. */
  readonly result: Schema;
  /** Params of the OpenClaw method with the same name that have no meaning here: accepted, never read. */
  readonly ignored?: readonly string[];
  /** Error codes of the method, in addition to the common ones. */
  readonly errors?: readonly Code[];
  /** Events that the method causes. */
  readonly events?: readonly string[];
}

/** Error codes of methods with a param that names a session. */
export const NAMES_SESSION = [
  "invalid_session_key",
  "session_not_found",
  "stale_session_id",
  "not_visible",
] as const satisfies readonly Code[];
/** Error codes of methods that start a run. */
export const ASKS_RUN = ["session_archived", "queue_full", "send_denied"] as const satisfies readonly Code[];
/** Events from the start to the end of a run. */
export const OF_RUNS = ["agent", "chat", "sessions"] as const;

/** The param that names a session. */
export const sessionKey = about(
  name,
  "Key or id of the session. `main` is the default agent's main session.",
);
export const cursor = about(name, "`nextCursor` of the previous page.");

/** The state of a delivery in the outbox. */
export const deliveryState = oneOf("pending", "sent", "failed", "skipped");

export const NODE = "node";
export const READ = "operator.read";
export const WRITE = "operator.write";
export const ADMIN = "operator.admin";
