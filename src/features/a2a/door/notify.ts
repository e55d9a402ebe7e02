// Notifies A2A clients of the end of a task: writes an outbox row for each address, in the transaction that
// ends the run, so a notification is neither lost nor sent for an end that was not stored.
// PN1: a notification has no content of the conversation. The client reads the task with its token.

import { createGate } from "../../../access/token.ts";
import type { Channel } from "../../../channels/channel.ts";
import { postNews } from "../../../channels/programs.ts";
import { type EndedRunState, isEnded, type Run } from "../../../core/shapes/run.ts";
import { a2aContext } from "../../../core/shapes/session-key.ts";
import type { Unit } from "../../../engine/unit.ts";
import type { OutboxParts } from "../../../feature.ts";
import { contextOwner } from "../../../flows/session/client-session.ts";
import { currentRights } from "../../../gateway/auth.ts";
import { listAccessTokens } from "../../../store/queries/access-tokens.ts";
import { insertDelivery } from "../../../store/queries/channels/deliveries.ts";

import { type RecordOf, recordsOf } from "../../../store/records.ts";
import type { Db, Tx } from "../../../store/sql.ts";

/** An empty `token`, or `scheme` of the `Authorization` header: there is none. */
export type PushConfig = RecordOf<"push_configs">;

const CONFIGS = recordsOf<PushConfig>()("push_configs", {
  key: ["run_id", "id"],
  columns: ["url", "token", "scheme", "credentials", "created_at"],
});

/** Stores an address. One with the same id of the same run is replaced. */
export const putPushConfig = (tx: Tx, config: PushConfig) => CONFIGS.put(tx, config);

/** Returns the addresses of a run, the oldest first. */
export const pushConfigsOf = (db: Db, runId: string) =>
  CONFIGS.all(CONFIGS.rows(db, { runId }).orderBy("created_at").orderBy("id"));

export const getPushConfig = (db: Db, runId: string, id: string) => CONFIGS.find(db, { runId, id });

export const deletePushConfig = (tx: Tx, runId: string, id: string) => CONFIGS.remove(tx, { runId, id });

const STATES: Readonly<Record<EndedRunState, string>> = {
  ok: "TASK_STATE_COMPLETED",
  error: "TASK_STATE_FAILED",
  timeout: "TASK_STATE_FAILED",
  aborted: "TASK_STATE_CANCELED",
};

/** The text of an outbox row: the address's id, and the body of the request. */
interface PushText {
  readonly runId: string;
  readonly configId: string;
  readonly body: unknown;
}

/** Queues the notification of one address, if the run has ended. */
export async function queuePush(unit: Unit, config: PushConfig, run: Run): Promise<void> {
  const { runId, sessionKey, state, endedAt = unit.now } = run;
  if (!isEnded(state)) return;
  const status = { state: STATES[state], timestamp: new Date(endedAt).toISOString() };
  const body = { statusUpdate: { taskId: runId, contextId: a2aContext(sessionKey), status } };
  const text: PushText = { runId, configId: config.id, body };
  await insertDelivery(unit.tx, {
    id: unit.newId(),
    sessionKey,
    kind: "hook",
    runId,
    // One route for each host, so that hosts are paced one by one.
    route: { channel: "a2a", to: new URL(config.url).host },
    text: JSON.stringify(text),
    state: "pending",
    createdAt: unit.now,
  });
  unit.lookAtDates();
}

/** Queues the notifications of an ended run. */
export async function runEnded(unit: Unit, run: Run): Promise<void> {
  for (const config of await pushConfigsOf(unit.tx, run.runId)) await queuePush(unit, config, run);
}

/** Returns the check of the client to which the session of a task belongs (PU2 of push.ts). */
function taskReaders({ settings, db, world, tokens }: Omit<OutboxParts, "commit">) {
  return async (sessionKey: string): Promise<boolean> => {
    const rows = await listAccessTokens(db, world.clock.now());
    // The key of a task's session contains a hash of its client's token, so this check needs no run, which
    // may have been deleted with its session.
    const reader = currentRights(tokens, rows).find(
      ({ id }) => a2aContext(sessionKey, contextOwner(id)) !== undefined,
    );
    return reader !== undefined && createGate(settings, reader, "read")(sessionKey);
  };
}

/**
 * Creates the channel of notifications. An attempt can be repeated, because a notification only says that a
 * task has ended. Each attempt checks that the host may still be notified, and that the client may still read
 * the task (I13).
 */
export function createChannel(parts: Omit<OutboxParts, "commit">, mayRead = taskReaders(parts)): Channel {
  const { settings, db, world } = parts;
  const deliver: Channel["deliver"] = async ({ text, sessionKey }) => {
    const { runId, configId, body } = JSON.parse(text) as PushText;
    const config = await getPushConfig(db, runId, configId);
    if (config === undefined) return { kind: "refused", error: "the client no longer wants it" };
    const { url, token, scheme, credentials } = config;
    if (!settings.a2a.notifyHosts.includes(new URL(url).host))
      return { kind: "refused", error: "a2a.notifyHosts no longer has the host" };
    if (!(await mayRead(sessionKey)))
      return { kind: "refused", error: "the token that named the address may no longer read the task" };
    const headers = {
      "content-type": "application/a2a+json",
      ...(token === "" ? {} : { "x-a2a-notification-token": token }),
      ...(credentials === "" ? {} : { authorization: `${scheme} ${credentials}` }),
    };
    return postNews({ url, headers, body: JSON.stringify(body) }, world);
  };
  return { id: "a2a", deduplicates: true, deliver };
}
