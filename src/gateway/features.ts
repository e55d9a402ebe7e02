// Lists the methods and events of a connection by its role. Scopes do not matter here: a method that refuses
// a call names the missing scope.

import { EVENTS } from "../contract/events.ts";
import type { HelloOk } from "../contract/frames.ts";
import { type MethodSpec, NODE } from "../contract/methods/parts.ts";
import { METHODS } from "../contract/methods.ts";
import { MAX_PAYLOAD_BYTES, MAX_PAYLOAD_OF_NODE_BYTES, NODE_EVENTS } from "../contract/protocol.ts";
import type { Caller } from "./auth.ts";

/** `published-model-catalog`: `models.list` returns the models of the gateway, not those of a provider. */
const CAPABILITIES = ["published-model-catalog"];

/** Returns the methods that a connection may call, and the events that it may get. */
export function featuresFor({ role }: Caller): HelloOk["features"] {
  const methods = Object.entries<MethodSpec>(METHODS)
    .filter(([, { scope }]) => (scope === NODE) === (role === "node"))
    .map(([name]) => name);
  if (role === "node") return { methods, events: NODE_EVENTS };
  const events = Object.keys(EVENTS).filter((event) => !event.startsWith("node.invoke."));
  return { methods, events, capabilities: CAPABILITIES };
}

/** Maximum bytes of one message from the connection. */
export function maxPayloadFor({ role }: Caller): number {
  return role === "node" ? MAX_PAYLOAD_OF_NODE_BYTES : MAX_PAYLOAD_BYTES;
}
