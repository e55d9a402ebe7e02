// Lists how each method treats an idempotency key, and so which requests a client may retry.
// This list is separate from the params, so that clients can bundle it without the schemas.

import type { MethodName, ParamsOf } from "./methods.ts";

/**
 * `none`: the method only reads, or is harmless to repeat. `optional`: a key is accepted. `required`: a key
 * is required. `run`: a key is required, and is also the id of the run.
 */
type Idempotency = "none" | "optional" | "required" | "run";

/** The entries that are valid for a method with these params. */
type OfParams<P> = P extends { readonly idempotencyKey: string }
  ? "required" | "run"
  : "idempotencyKey" extends keyof P
    ? "optional"
    : "none";

export const IDEMPOTENCY = {
  health: "none",
  status: "none",
  "system-presence": "none",
  "agents.list": "none",
  "models.list": "none",
  "agents.describe": "none",
  "agents.prompt": "none",
  "agents.memory.get": "none",
  "agents.memory.set": "optional",
  "models.discover": "none",
  "models.test": "none",
  "sessions.list": "none",
  "sessions.subscribe": "none",
  "sessions.describe": "none",
  "sessions.resolve": "none",
  "sessions.create": "required",
  "sessions.fork": "required",
  "sessions.preview": "none",
  "sessions.earlier": "none",
  "sessions.search": "none",
  "chat.image": "none",
  "chat.file": "none",
  "sessions.patch": "optional",
  "sessions.reset": "optional",
  "sessions.delete": "optional",
  "chat.history": "none",
  "chat.startup": "none",
  "chat.send": "run",
  "chat.abort": "optional",
  "chat.inject": "optional",
  agent: "run",
  "agent.wait": "none",
  send: "required",
  "tools.catalog": "none",
  "tools.invoke": "optional",
  "deliveries.list": "none",
  "deliveries.retry": "optional",
  "deliveries.dismiss": "optional",
  "attention.list": "none",
  "runs.list": "none",
  "runs.retry": "optional",
  "runs.dismiss": "optional",
  "permissions.list": "none",
  "permissions.answer": "optional",
  "permissions.rules": "none",
  "permissions.forget": "optional",
  "chains.list": "none",
  "chains.get": "none",
  "chains.record": "none",
  "access.explain": "none",
  "channels.status": "none",
  "channels.test": "none",
  "channels.pair.list": "none",
  "channels.pair.approve": "optional",
  "channels.pair.reject": "optional",
  "channels.pair.remove": "optional",
  "bindings.list": "none",
  "bindings.unbind": "optional",
  "demo.start": "none",
  "demo.stop": "none",
  "metrics.history": "none",
  usage: "none",
  "logs.tail": "none",
  "servers.list": "none",
  "servers.test": "none",
  "store.backups": "none",
  "store.backup": "optional",
  doctor: "none",
  "config.check": "none",
  "config.get": "none",
  "config.set": "optional",
  "config.patch": "optional",
  "config.schema": "none",
  "cron.list": "none",
  "cron.runs": "none",
  "cron.preview": "none",
  "cron.add": "optional",
  "cron.update": "optional",
  "cron.remove": "optional",
  "cron.run": "optional",
  "tokens.list": "none",
  "tokens.create": "required",
  "tokens.narrow": "optional",
  "tokens.revoke": "optional",
  "device.token.list": "none",
  "device.token.revoke": "optional",
  "session.token.revoke": "optional",
  "node.pair.list": "none",
  "node.pair.approve": "optional",
  "node.pair.reject": "optional",
  "node.pair.remove": "optional",
  "node.rename": "optional",
  "node.list": "none",
  "node.describe": "none",
  "node.invoke": "required",
  "node.invoke.result": "none",
  "node.event": "optional",
} as const satisfies { [M in MethodName]: OfParams<ParamsOf<M>> };

/** Returns the entry of a method, or undefined for an unknown method. */
export function idempotencyOf(method: string): Idempotency | undefined {
  return Object.hasOwn(IDEMPOTENCY, method) ? IDEMPOTENCY[method as MethodName] : undefined;
}
