// Owns what the entries of several tools share, and the type of an entry.

import type { Code } from "../../core/shapes/errors.ts";
import { about, type ObjectSchema, oneOf, type Schema } from "../schema.ts";

/** One tool: everything that models, its implementation and its documentation know of it. */
export interface ToolEntry {
  readonly description: string;
  readonly params: ObjectSchema;
  /** Accepted and not advertised: arguments that other programs send. */
  readonly accepts?: ObjectSchema;
  readonly result: Schema;
  /** Error codes of the tool, besides the common ones. */
  readonly errors: readonly Code[];
  /** The sessions that have the tool. */
  readonly who: string;
  /** May run in parallel with other calls of the same message. */
  readonly parallel: boolean;
  /** May run again after a crash. */
  readonly idempotent: boolean;
}

/** One of these words. Providers want the type beside the values. */
export const word = <const V extends readonly string[]>(values: V): Schema<V[number]> =>
  ({ type: "string", ...oneOf(...values) }) as Schema as Schema<V[number]>;
/** An argument that is one of these words. */
export const choice = <const V extends readonly string[]>(
  values: V,
  description: string,
): Schema<V[number]> => about(word(values), description);
/** The status of a call that did its work. */
export const done = oneOf("ok");

/** May run beside other calls, and again after a crash. */
export const REPEATABLE = { parallel: true, idempotent: true } as const;

/** The sessions that have the tools for other sessions. */
export const OF_SESSIONS = "Every session; sub-agents only if `tools.subagents.tools.allow` lists it.";
