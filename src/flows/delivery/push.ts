// Notifies A2A clients of the end of a task: writes an outbox row for each address, in the transaction that
// ends the run, so a notification is neither lost nor sent for an end that was not stored.
// PN1: a notification has no content of the conversation. The client reads the task with its token.

import type { EndedRunState } from "../../core/shapes/run.ts";
import { a2aContext } from "../../core/shapes/session-key.ts";
import type { Recorder, Unit } from "../../engine/unit.ts";
import { insertDelivery } from "../../store/queries/channels/deliveries.ts";
import { type PushConfig, pushConfigsOf } from "../../store/queries/runs/push-configs.ts";

/** The outbox channel that notifies A2A clients. */
export const PUSH = "a2a";

const STATES: Readonly<Record<EndedRunState, string>> = {
  ok: "TASK_STATE_COMPLETED",
  error: "TASK_STATE_FAILED",
  timeout: "TASK_STATE_FAILED",
  aborted: "TASK_STATE_CANCELED",
};

/** The end of a run that clients are notified of. */
export interface EndedTask {
  readonly runId: string;
  readonly sessionKey: string;
  readonly state: EndedRunState;
  readonly endedAt: number;
}

/** The text of an outbox row: the address's id, and the body of the request. */
export interface PushText {
  readonly runId: string;
  readonly configId: string;
  readonly body: unknown;
}

/** Queues the notification of one address. */
export async function queuePush(unit: Unit, config: PushConfig, ended: EndedTask): Promise<void> {
  const { runId, sessionKey, state, endedAt } = ended;
  const status = { state: STATES[state], timestamp: new Date(endedAt).toISOString() };
  const body = { statusUpdate: { taskId: runId, contextId: a2aContext(sessionKey), status } };
  const text: PushText = { runId, configId: config.id, body };
  await insertDelivery(unit.tx, {
    id: unit.newId(),
    sessionKey,
    kind: "hook",
    runId,
    // One route for each host, so that hosts are paced one by one.
    route: { channel: PUSH, to: new URL(config.url).host },
    text: JSON.stringify(text),
    state: "pending",
    createdAt: unit.now,
  });
}

/** Queues the notifications of a transaction's ended runs. */
export const recordPushes: Recorder = async (unit, events) => {
  for (const event of events) {
    if (event.kind !== "run_ended" || a2aContext(event.sessionKey) === undefined) continue;
    const configs = await pushConfigsOf(unit.tx, event.runId);
    for (const config of configs) await queuePush(unit, config, event);
    if (configs.length > 0) unit.lookAtDates();
  }
};
