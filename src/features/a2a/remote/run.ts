// Executes a claimed run as a turn of an agent that is reached over A2A, and keeps its conversation in the
// store.

import type { TurnEnd } from "../../../agent/loop/loop.ts";
import { optional } from "../../../core/optional.ts";
import { labelFrom } from "../../../core/rules/labels/labels.ts";
import { sentNameOf, sentTypeOf } from "../../../core/sent-file.ts";
import { fail, toolFailure } from "../../../core/shapes/errors.ts";
import type { Labels } from "../../../core/shapes/labels.ts";
import { isEnded, type Run } from "../../../core/shapes/run.ts";
import { settingsNow } from "../../../core/shapes/settings/live.ts";
import { type AgentSettings, findAgent } from "../../../core/shapes/settings/settings.ts";
import type { Engine } from "../../../engine/engine.ts";
import { failRun } from "../../../engine/run/begin.ts";
import type { Unit } from "../../../engine/unit.ts";
import type { OutsideRun, OutsideRuntime, RuntimeParts } from "../../../feature.ts";
import { sendFile } from "../../../flows/delivery/sent-file.ts";
import { addLabels } from "../../../store/queries/labels.ts";
import { getRemoteTask, putRemoteTask, type RemoteTask } from "../../../store/queries/remote-tasks.ts";
import { getRun } from "../../../store/queries/runs/runs.ts";
import { sentResult, withoutCredentials } from "../../../tools/send-file.ts";
import type { ToolResult } from "../../../tools/tool.ts";
import type { A2aRuntime } from "../settings.ts";
import { RemoteAgents, type RemoteTurnArgs } from "./remote.ts";
import type { RemoteSource } from "./remote-card.ts";

/** Sends a file of an agent elsewhere to the people of the session. Returns the result of such a call. */
async function keepFile(
  engine: Engine,
  { handle, session, settings }: OutsideRun,
  callId: string,
  file: { readonly name: string; readonly content: Uint8Array },
): Promise<ToolResult> {
  const { redactor } = engine;
  const { maxBytes } = settings.tools.sendFile;
  if (file.content.length > maxBytes)
    return toolFailure(
      fail("too_large", `the file has ${file.content.length} bytes; the limit is ${maxBytes}`),
    );
  const before = Buffer.from(file.content);
  const data = await withoutCredentials(before, redactor);
  const name = await redactor.whole(sentNameOf(file.name));
  await handle.confirm();
  const { run, wait } = handle;
  const copy = {
    name,
    mimeType: sentTypeOf(name, data),
    bytes: data.length,
    content: data.toString("base64"),
  };
  const sent = await sendFile({ settings, engine }, { ...copy, session, run, wait, callId, caption: "" });
  return sent.ok ? sentResult(sent.value, data !== before) : toolFailure(sent);
}

/** The parts of a turn elsewhere besides its run. `also` is called in each transaction that stores state. */
interface Elsewhere
  extends Pick<RemoteTurnArgs, "runtime" | "agentId" | "limits" | "contextTokens" | "context" | "toPeer"> {
  also?(unit: Unit, state: RemoteTask): Promise<void>;
}

/** Runs a turn elsewhere, with the state and the files of its conversation in the store. */
export async function takeTurn(
  agents: RemoteAgents,
  engine: Engine,
  remote: OutsideRun,
  { also, ...elsewhere }: Elsewhere,
): Promise<TurnEnd> {
  const { handle, session, entries, world } = remote;
  const { runId, sessionKey } = handle.run;
  const { db } = engine.store;
  return agents.turn({
    ...elsewhere,
    handle,
    entries,
    world,
    ...optional({ tokensLeft: await handle.tokensLeft() }),
    read: () => getRemoteTask(db, session.sessionId),
    async hasEnded() {
      const run = await getRun(db, runId);
      return run === undefined || isEnded(run.state);
    },
    write: async (state) => {
      await remote.handle.confirm();
      return engine.commit(async (unit) => {
        // Another process has the run.
        if (!(await remote.handle.wait.holds(unit))) return false;
        await putRemoteTask(unit.tx, remote.session.sessionId, state, unit.now);
        await also?.(unit, state);
        return true;
      });
    },
    keep: (callId, file) => keepFile(engine, remote, callId, file),
    onRetry(retry) {
      // A message to a peer waits without being shown as a retry.
      const atMs = world.clock.now();
      if (elsewhere.toPeer === undefined) handle.publish({ kind: "retry", runId, sessionKey, retry, atMs });
    },
  });
}

/** Marks the session and the chain of a run whose answer comes from elsewhere. */
export function labelAnswer(engine: Engine, { handle }: OutsideRun, labels: Labels): Promise<void> {
  const { sessionKey: key, sessionId, chainId, runId } = handle.run;
  return engine.commit(({ tx, now: at }) =>
    addLabels(tx, { key, sessionId, chainId }, labels, { at, runId }),
  );
}

/** Cancels the task of an aborted run. Does nothing if the task is unknown. */
export async function cancelTask(
  { world, engine }: RuntimeParts,
  { sessionId, runId, agentId }: Run,
  runtime: RemoteSource,
): Promise<void> {
  const task = await getRemoteTask(engine().store.db, sessionId);
  if (task?.runId !== runId || task.remote !== runtime.card || task.taskId === undefined || task.isAsking)
    return;
  await new RemoteAgents().cancel({ runtime, agentId, world }, task.taskId);
}

/** Opens the runtime of agents elsewhere. Nothing is sent before the first turn. */
export function openRuntime(parts: RuntimeParts): OutsideRuntime {
  const agents = new RemoteAgents();
  const runtimeOf = (agent?: AgentSettings) => agent?.runtime as A2aRuntime | undefined;
  return {
    async turn(remote) {
      const { session, agent, context } = remote;
      const runtime = runtimeOf(agent);
      if (agent === undefined || runtime === undefined) return failRun("the agent is no longer elsewhere");
      const engine = parts.engine();
      const { runId } = remote.handle.run;
      await labelAnswer(engine, remote, labelFrom("outside", `a2a ${agent.id}`, engine.now(), runId));
      const own = { runtime, agentId: agent.id, limits: agent, contextTokens: session.contextUsed };
      return takeTurn(agents, engine, remote, { ...own, ...optional({ context }) });
    },
    async noteAborted(run) {
      const runtime = runtimeOf(findAgent(settingsNow(parts.settings), run.agentId));
      if (runtime !== undefined) await cancelTask(parts, run, runtime);
    },
  };
}
