// Cancels the task of an aborted run at an agent elsewhere, also if no process executes the run just then.

import type { RemoteSource } from "../agent/a2a/remote-card.ts";
import type { Run } from "../core/shapes/run.ts";
import { peerInKey } from "../core/shapes/session-key.ts";
import { settingsNow } from "../core/shapes/settings/live.ts";
import { findAgent, type Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import { getRemoteTask } from "../store/queries/remote-tasks.ts";
import type { World } from "../world.ts";

interface AbortedParts {
  readonly settings: Settings;
  readonly engine: Engine;
  readonly world: World;
}

/** Returns how the agent of a run is reached, or undefined if the run is not elsewhere. */
async function sourceOf(parts: AbortedParts, run: Run): Promise<RemoteSource | undefined> {
  if (peerInKey(run.sessionKey) !== undefined) return (await import("./peer.ts")).sourceOfRun(parts, run);
  const runtime = findAgent(settingsNow(parts.settings), run.agentId)?.runtime;
  return runtime?.type === "a2a" ? runtime : undefined;
}

/** Cancels the task of an aborted run. Does nothing if its agent is not elsewhere, or its task is unknown. */
export async function cancelElsewhere(parts: AbortedParts, run: Run): Promise<void> {
  const { engine, world } = parts;
  const { sessionId, runId, agentId } = run;
  const runtime = await sourceOf(parts, run);
  if (runtime === undefined) return;
  const task = await getRemoteTask(engine.store.db, sessionId);
  if (task?.runId !== runId || task.remote !== runtime.card || task.taskId === undefined || task.isAsking)
    return;
  const { RemoteAgents } = await import("../agent/a2a/remote.ts");
  await new RemoteAgents().cancel({ runtime, agentId, world }, task.taskId);
}
