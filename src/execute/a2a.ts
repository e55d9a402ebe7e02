// Executes a claimed run as a turn of an agent that is reached over A2A, and keeps its conversation in the
// store.

import { RemoteAgents, type RemoteState, type RemoteTurnArgs } from "../agent/a2a/remote.ts";
import type { TurnEnd } from "../agent/loop/loop.ts";
import { optional } from "../core/optional.ts";
import { sentNameOf, sentTypeOf } from "../core/sent-file.ts";
import { fail, toolFailure } from "../core/shapes/errors.ts";
import type { Entry } from "../core/shapes/message.ts";
import { isEnded } from "../core/shapes/run.ts";
import type { Session } from "../core/shapes/session.ts";
import type { A2aRuntime, AgentSettings, Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import type { LaneHandle } from "../engine/run/execution.ts";
import type { Unit } from "../engine/unit.ts";
import { sendFile } from "../flows/delivery/sent-file.ts";
import { getRemoteTask, putRemoteTask } from "../store/queries/remote-tasks.ts";
import { getRun } from "../store/queries/runs/runs.ts";
import type { Store } from "../store/sql.ts";
import { sentResult, withoutCredentials } from "../tools/send-file.ts";
import type { ToolResult } from "../tools/tool.ts";
import type { World } from "../world.ts";

export interface RemoteRun {
  readonly handle: LaneHandle;
  readonly session: Session;
  readonly agent: AgentSettings;
  readonly runtime: A2aRuntime;
  readonly entries: readonly Entry[];
  readonly context: string | undefined;
}

export interface RemoteParts {
  readonly settings: Settings;
  readonly store: Store;
  readonly engine: Engine;
  readonly world: World;
}

/** The parts that keep the files of an answer. */
export type KeepParts = Pick<RemoteParts, "settings" | "engine">;

export type RemoteTurn = (parts: RemoteParts, run: RemoteRun) => Promise<TurnEnd>;

/** Sends a file of an agent elsewhere to the people of the session. Returns the result of such a call. */
export async function keepFile(
  parts: KeepParts,
  { handle, session }: Pick<RemoteRun, "handle" | "session">,
  callId: string,
  file: { readonly name: string; readonly content: Uint8Array },
): Promise<ToolResult> {
  const { settings, engine } = parts;
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

/**
 * Stores the state of a turn's task. `also` is called in the same transaction. Returns false, and stores
 * nothing, if another process has the run.
 */
export async function keepTask(
  { engine }: Pick<KeepParts, "engine">,
  { handle, session }: Pick<RemoteRun, "handle" | "session">,
  state: RemoteState,
  also?: (unit: Unit) => Promise<void>,
): Promise<boolean> {
  await handle.confirm();
  return engine.commit(async (unit) => {
    if (!(await handle.wait.holds(unit))) return false;
    await putRemoteTask(unit.tx, session.sessionId, state, unit.now);
    await also?.(unit);
    return true;
  });
}

/** The arguments that each turn elsewhere has: its run, its conversation and its state. */
type CommonArgs = Pick<
  RemoteTurnArgs,
  | ("runId" | "hop" | "chainId" | "tokensLeft" | "entries" | "world" | "signal")
  | ("read" | "hasEnded" | "append" | "mayAct" | "onText")
>;

export async function argsOf(
  { store, world }: Pick<RemoteParts, "store" | "world">,
  { handle, session, entries }: Pick<RemoteRun, "handle" | "session" | "entries">,
): Promise<CommonArgs> {
  const { runId, hop, chainId } = handle.run;
  return {
    ...{ runId, hop, chainId, entries, world },
    ...optional({ tokensLeft: await handle.tokensLeft() }),
    signal: handle.signal,
    read: () => getRemoteTask(store.db, session.sessionId),
    async hasEnded() {
      const run = await getRun(store.db, runId);
      return run === undefined || isEnded(run.state);
    },
    append: (entry) => handle.append(entry),
    mayAct: () => handle.confirm(),
    onText: (delta) => handle.text(delta),
  };
}

/** Returns the executor. Nothing is sent before the first turn. */
export function openRemoteAgents(): RemoteTurn {
  const agents = new RemoteAgents();
  return async (parts, remote) => {
    const { world } = parts;
    const { handle, session, agent, runtime, context } = remote;
    const { runId, sessionKey } = handle.run;
    return agents.turn({
      ...(await argsOf(parts, remote)),
      runtime,
      agentId: agent.id,
      limits: agent,
      contextTokens: session.contextUsed,
      ...optional({ context }),
      write: (state) => keepTask(parts, remote, state),
      keep: (callId, file) => keepFile(parts, remote, callId, file),
      onRetry(retry) {
        const atMs = world.clock.now();
        handle.publish({ kind: "retry", runId, sessionKey, retry, atMs });
      },
    });
  };
}
