// Cancels the task of an aborted run at an agent elsewhere, also if no process executes the run just then.

import { RemoteAgents } from "../agent/a2a/remote.ts";
import type { Run } from "../core/shapes/run.ts";
import type { A2aRuntime } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import { getRemoteTask } from "../store/queries/remote-tasks.ts";
import type { World } from "../world.ts";
import { sourceOfRun } from "./peer.ts";

/**
 * Cancels the task of an aborted run. Does nothing if the task is unknown. `own`: how the agent is reached;
 * undefined for an agent of a peer.
 */
export async function cancelElsewhere(
  parts: { readonly engine: Engine; readonly world: World },
  run: Run,
  own: A2aRuntime | undefined,
): Promise<void> {
  const { sessionId, runId, agentId } = run;
  const runtime = own ?? (await sourceOfRun(parts, run));
  if (runtime === undefined) return;
  const task = await getRemoteTask(parts.engine.store.db, sessionId);
  if (task?.runId !== runId || task.remote !== runtime.card || task.taskId === undefined || task.isAsking)
    return;
  await new RemoteAgents().cancel({ runtime, agentId, world: parts.world }, task.taskId);
}
