// Lists the HTTP requests with a body that are not methods.

import { added } from "../features.ts";
import { idempotencyKey } from "./methods/parts.ts";
import { TOOL_METHODS } from "./methods/tools.ts";
import { about, anything, flag, mapOf, type ObjectSchema, type Of, object, type Schema } from "./schema.ts";

/** The entry of one kind of HTTP request. Its senders, its handler and the documentation use it. */
export interface BodySpec {
  /** One sentence for the documentation. */ readonly summary: string;
  readonly body: ObjectSchema;
  /** The response body. A refused request gets `{ok: false, error}` instead. */
  readonly result: Schema;
}

const { name: tool, arguments: args, sessionKey } = TOOL_METHODS["tools.invoke"].params.properties;
const KERNEL_BODIES = {
  "POST /tools/invoke": {
    summary: "Calls a tool as a session, like `tools.invoke`.",
    body: object({ tool }, { args, sessionKey, idempotencyKey }),
    result: object({
      ok: flag("False if the tool does not exist or its result is an error."),
      result: about(mapOf(anything), "Result of the tool."),
    }),
  },
} as const satisfies Record<`POST /${string}`, BodySpec>;

export const BODIES = { ...KERNEL_BODIES, ...added("bodies") };

export type BodyName = keyof typeof BODIES;

/** The checked body of a request. */
export type BodyOf<B extends BodyName> = Of<(typeof BODIES)[B]["body"]>;

/** The body of the answer to a request. */
export type BodyAnswerOf<B extends BodyName> = Of<(typeof BODIES)[B]["result"]>;
