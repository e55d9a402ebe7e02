// Lists the methods: the scope that each needs, and its params as JSON Schema. Schemas are compiled at first
// use (`check.ts`).
// A method that is not in this list does not exist. A param that is neither listed nor in `ignored` is an
// error. `ignored` are params of the OpenClaw method with the same name that have no meaning here: they are
// accepted and never read.

import { added } from "../features.ts";
import { ACCESS_METHODS } from "./methods/access.ts";
import { AGENT_METHODS } from "./methods/agents.ts";
import { ATTENTION_METHODS } from "./methods/attention.ts";
import { CHAIN_METHODS } from "./methods/chains.ts";
import { CHANNEL_METHODS } from "./methods/channels.ts";
import { CONFIG_METHODS } from "./methods/configuration.ts";
import { DELIVERY_METHODS } from "./methods/deliveries.ts";
import { DEMO_METHODS } from "./methods/demo.ts";
import { DEVICE_METHODS } from "./methods/devices.ts";
import { LABEL_METHODS } from "./methods/labels.ts";
import { OPERATION_METHODS, OVERVIEW_METHODS } from "./methods/operations.ts";
import type { MethodSpec } from "./methods/parts.ts";
import { SERVER_METHODS } from "./methods/servers.ts";
import { SESSION_METHODS } from "./methods/sessions.ts";
import { TALK_METHODS } from "./methods/talk.ts";
import { TOKEN_METHODS } from "./methods/tokens.ts";
import { TOOL_METHODS } from "./methods/tools.ts";
import { UPKEEP_METHODS } from "./methods/upkeep.ts";
import type { Of } from "./schema.ts";

const KERNEL_METHODS = {
  ...OVERVIEW_METHODS,
  ...AGENT_METHODS,
  ...ATTENTION_METHODS,
  ...SESSION_METHODS,
  ...TALK_METHODS,
  ...TOOL_METHODS,
  ...DELIVERY_METHODS,
  ...CHAIN_METHODS,
  ...ACCESS_METHODS,
  ...LABEL_METHODS,
  ...CHANNEL_METHODS,
  ...DEMO_METHODS,
  ...OPERATION_METHODS,
  ...CONFIG_METHODS,
  ...UPKEEP_METHODS,
  ...SERVER_METHODS,
  ...DEVICE_METHODS,
  ...TOKEN_METHODS,
} as const satisfies Record<string, MethodSpec>;

export const METHODS = { ...KERNEL_METHODS, ...added("methods") };

/** The methods whose handlers the dispatcher has. Features bring the handlers of the others. */
export type KernelMethodName = keyof typeof KERNEL_METHODS;

export type MethodName = keyof typeof METHODS;

/** Returns a method's entry. */
export function methodOf(name: MethodName): MethodSpec {
  return METHODS[name];
}

/** The params of a method. */
export type ParamsOf<M extends MethodName> = Of<(typeof METHODS)[M]["params"]>;

/** The payload of a method's answer. */
export type PayloadOf<M extends MethodName> = Of<(typeof METHODS)[M]["result"]>;

export function isMethod(text: string): text is MethodName {
  return Object.hasOwn(METHODS, text);
}
