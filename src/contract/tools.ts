// Lists the built-in tools of agents: description, arguments, result, errors. The folder `src/tools`
// implements them.
// Arguments are converted leniently before they are checked (tools/arguments.ts).

import type { JsonSchema, ToolSpec } from "../core/shapes/tool.ts";
import { added } from "../features.ts";
import type { Of, Schema } from "./schema.ts";
import type { ToolEntry } from "./tools/parts.ts";
import { SESSION_TOOLS } from "./tools/sessions.ts";
import { WORK_TOOLS } from "./tools/work.ts";

export const TOOLS = { ...SESSION_TOOLS, ...WORK_TOOLS, ...added("tools") } as const satisfies Record<
  string,
  ToolEntry
>;

export type ToolName = keyof typeof TOOLS;

/** Returns the part of a tool's entry that models read. */
export function toolSpec(name: ToolName): ToolSpec {
  const { description, params, parallel, idempotent } = TOOLS[name];
  return { name, description, parameters: params as unknown as JsonSchema, parallel, idempotent };
}

const ACCEPTED = new Map(
  Object.entries<ToolEntry>(TOOLS).map(([name, { params, accepts }]) => {
    if (accepts === undefined) return [name, params];
    return [name, { ...params, properties: { ...params.properties, ...accepts.properties } }];
  }),
);

/**
 * Returns the schema of all arguments that a tool accepts. Returns the same object each time, so that it is
 * compiled once.
 */
export function acceptedBy(name: ToolName): JsonSchema {
  return ACCEPTED.get(name) as unknown as JsonSchema;
}

type Accepted<E> = E extends { readonly accepts: infer A extends Schema } ? Of<A> : unknown;

/** The checked arguments of a tool. */
export type ArgumentsOf<N extends ToolName> = Of<(typeof TOOLS)[N]["params"]> & Accepted<(typeof TOOLS)[N]>;

/** The result of a tool call that did not fail. */
export type ToolResultOf<N extends ToolName> = Of<(typeof TOOLS)[N]["result"]>;
