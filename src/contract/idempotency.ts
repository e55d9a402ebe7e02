// Lists how each method treats an idempotency key, and so which requests a client may retry.
// This list is separate from the params, so that clients can bundle it without the schemas. Methods that
// accept a key are many, so they are not in it.

import type { MethodName, ParamsOf } from "./methods.ts";

/**
 * `none`: the method only reads, or is harmless to repeat. `optional`: a key is accepted. `required`: a key
 * is required. `run`: a key is required, and is also the id of the run.
 */
type Idempotency = "none" | "optional" | "required" | "run";

/** The entries that are valid for a method with these params. Never: the method is not listed. */
type OfParams<P> = P extends { readonly idempotencyKey: string }
  ? "required" | "run"
  : "idempotencyKey" extends keyof P
    ? never
    : "none";

/** The methods that are listed. All others are `optional`. */
type Listed = { [M in MethodName]: [OfParams<ParamsOf<M>>] extends [never] ? never : M }[MethodName];

const LISTED = {
  health: "none",
  status: "none",
  "system-presence": "none",
  "agents.list": "none",
  "models.list": "none",
  "agents.describe": "none",
  "agents.prompt": "none",
  "agents.memory.get": "none",
  "models.discover": "none",
  "models.test": "none",
  "sessions.list": "none",
  "sessions.subscribe": "none",
  "sessions.describe": "none",
  "sessions.resolve": "none",
  "sessions.create": "required",
  "sessions.fork": "required",
  "sessions.compact": "required",
  "sessions.preview": "none",
  "sessions.earlier": "none",
  "sessions.search": "none",
  "chat.image": "none",
  "chat.file": "none",
  "chat.history": "none",
  "chat.startup": "none",
  "chat.send": "run",
  agent: "run",
  "agent.wait": "none",
  send: "required",
  "tools.catalog": "none",
  "deliveries.list": "none",
  "attention.list": "none",
  "runs.list": "none",
  "permissions.list": "none",
  "permissions.rules": "none",
  "chains.list": "none",
  "chains.get": "none",
  "chains.record": "none",
  "chains.replay": "none",
  "chains.replay.stop": "none",
  "chains.diff": "none",
  "access.explain": "none",
  "channels.status": "none",
  "channels.test": "none",
  "channels.pair.list": "none",
  "bindings.list": "none",
  "demo.start": "none",
  "demo.stop": "none",
  "metrics.history": "none",
  usage: "none",
  "logs.tail": "none",
  "servers.list": "none",
  "servers.test": "none",
  "store.backups": "none",
  doctor: "none",
  "config.check": "none",
  "config.get": "none",
  "config.schema": "none",
  "cron.list": "none",
  "cron.get": "none",
  "cron.runs": "none",
  "cron.preview": "none",
  "tokens.list": "none",
  "tokens.create": "required",
  "device.token.list": "none",
  "node.pair.list": "none",
  "node.list": "none",
  "node.describe": "none",
  "node.invoke": "required",
  "node.invoke.result": "none",
  "peers.list": "none",
} as const satisfies { [M in Listed]: OfParams<ParamsOf<M>> };

/** Methods that must not be executed twice, and so require a key. */
export type KeyedMethod = {
  [M in Listed]: (typeof LISTED)[M] extends "none" ? never : M;
}[Listed];

/** Returns how a method treats an idempotency key. A method that is not known accepts one, like most. */
export function idempotencyOf(method: string): Idempotency {
  return Object.hasOwn(LISTED, method) ? LISTED[method as Listed] : "optional";
}
