// Executes a claimed run as a turn of an agent that is reached over A2A, and keeps its conversation in the
// store.

import { RemoteAgents } from "../agent/a2a/remote.ts";
import type { TurnEnd } from "../agent/loop/loop.ts";
import { optional } from "../core/optional.ts";
import type { Entry } from "../core/shapes/message.ts";
import { isEnded } from "../core/shapes/run.ts";
import type { Session } from "../core/shapes/session.ts";
import type { A2aRuntime, AgentSettings } from "../core/shapes/settings/settings.ts";
import type { LaneHandle } from "../engine/run/execution.ts";
import { getRemoteTask, putRemoteTask } from "../store/queries/remote-tasks.ts";
import { getRun } from "../store/queries/runs/runs.ts";
import type { Store } from "../store/sql.ts";
import type { World } from "../world.ts";

export interface RemoteRun {
  readonly handle: LaneHandle;
  readonly session: Session;
  readonly agent: AgentSettings;
  readonly runtime: A2aRuntime;
  readonly entries: readonly Entry[];
  readonly context: string | undefined;
}

/** Executes runs of agents elsewhere. */
export type RemoteTurn = (parts: { store: Store; world: World }, run: RemoteRun) => Promise<TurnEnd>;

/** Returns the executor. Nothing is sent before the first turn. */
export function openRemoteAgents(): RemoteTurn {
  const agents = new RemoteAgents();
  return ({ store, world }, { handle, session, agent, runtime, entries, context }) => {
    const { runId, sessionKey, hop } = handle.run;
    const { sessionId } = session;
    return agents.turn({
      ...{ runId, hop, runtime, entries, world },
      agentId: agent.id,
      limits: agent,
      contextTokens: session.contextUsed,
      signal: handle.signal,
      ...optional({ context }),
      read: () => getRemoteTask(store.db, sessionId),
      async write(state) {
        await handle.confirm();
        await store.transaction((tx) => putRemoteTask(tx, sessionId, state, world.clock.now()));
      },
      async hasEnded() {
        const run = await getRun(store.db, runId);
        return run === undefined || isEnded(run.state);
      },
      append: (entry) => handle.append(entry),
      onText: (delta) => handle.text(delta),
      onRetry(retry) {
        const atMs = world.clock.now();
        handle.publish({ kind: "retry", runId, sessionKey, retry, atMs });
      },
    });
  };
}
