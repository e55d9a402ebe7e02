// Defines the type of a tool's entry, and schemas that several tools share.

import type { Code } from "../../core/shapes/errors.ts";
import { about, type ObjectSchema, oneOf, type Schema } from "../schema.ts";

/** The entry of a tool. Models, the implementation of the tool and the documentation use it. */
export interface ToolEntry {
  readonly description: string;
  readonly params: ObjectSchema;
  /** Arguments that are accepted but not advertised, because other programs send them. */
  readonly accepts?: ObjectSchema;
  readonly result: Schema;
  /** Error codes of the tool, in addition to the common ones. */
  readonly errors: readonly Code[];
  /** Describes the sessions that have the tool. */
  readonly who: string;
  /** Whether calls can run in parallel with other calls of the same message. */
  readonly parallel: boolean;
  /** Whether it is safe to repeat a call after a crash. */
  readonly idempotent: boolean;
}

/** One of these values. Some providers require the type in addition to the values. */
export const word = <const V extends readonly string[]>(values: V): Schema<V[number]> =>
  ({ type: "string", ...oneOf(...values) }) as Schema as Schema<V[number]>;
/** An argument that must be one of these values. */
export const choice = <const V extends readonly string[]>(
  values: V,
  description: string,
): Schema<V[number]> => about(word(values), description);
/** The status of a call that succeeded. */
export const done = oneOf("ok");

/** For tools whose calls may run in parallel with other calls, and may be repeated after a crash. */
export const REPEATABLE = { parallel: true, idempotent: true } as const;

/** Describes the sessions that have the tools for other sessions. */
export const OF_SESSIONS = "Every session; sub-agents only if `tools.subagents.tools.allow` lists the tool.";
