// Says how each method treats an idempotency key, and so which requests a client may retry.
// Clients bundle this without the schemas of the methods. `tests/contract/idempotency.test.ts` compares both.

/**
 * `none`: the method only reads, or is harmless to repeat. `optional`: a key is accepted. `required`: a key
 * is required. `run`: a key is required, and is also the id of the run.
 */
type Idempotency = "none" | "optional" | "required" | "run";

/** The last words of methods that only read. */
const READS = /\.(list|get|runs|preview|describe|history|search|status|check|test|explain)$/;

/** Methods whose names do not tell. */
const LISTED: ReadonlyMap<string, Idempotency> = new Map(
  Object.entries({
    health: "none",
    status: "none",
    "system-presence": "none",
    "agents.prompt": "none",
    "models.discover": "none",
    "sessions.subscribe": "none",
    "sessions.resolve": "none",
    "sessions.create": "required",
    "sessions.fork": "required",
    "sessions.compact": "required",
    "sessions.earlier": "none",
    "chat.image": "none",
    "chat.file": "none",
    "chat.startup": "none",
    "chat.send": "run",
    agent: "run",
    "agent.wait": "none",
    send: "required",
    "tools.catalog": "none",
    "permissions.rules": "none",
    "chains.record": "none",
    "chains.replay": "none",
    "chains.replay.stop": "none",
    "chains.diff": "none",
    "demo.start": "none",
    "demo.stop": "none",
    usage: "none",
    "logs.tail": "none",
    "store.backups": "none",
    doctor: "none",
    "config.schema": "none",
    "tokens.create": "required",
    "node.invoke": "required",
    "node.invoke.result": "none",
    "servers.login": "none",
    "servers.login.finish": "none",
    "servers.logout": "none",
  } as const),
);

/** Returns how a method treats an idempotency key. A method that is not known accepts one, like most. */
export function idempotencyOf(method: string): Idempotency {
  return LISTED.get(method) ?? (READS.test(method) ? "none" : "optional");
}
