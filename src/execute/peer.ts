// Executes a claimed run of a session of a peer: takes its message to the peer, and brings back the answer.
// PX1: the message stays queued while the peer is away. The run holds no slot meanwhile, and a restart of
//      either gateway neither loses nor repeats the message.
// Also cancels the task of an aborted run elsewhere, even if no process executes the run just then.

import { signingKey } from "../access/gateway-key.ts";
import { peerProof } from "../access/peer-proof.ts";
import { RemoteAgents, type RemoteTurnArgs } from "../agent/a2a/remote.ts";
import type { RemoteSource } from "../agent/a2a/remote-card.ts";
import { SENDER_FIELD } from "../core/a2a.ts";
import { optional } from "../core/optional.ts";
import { isPaired, type PairedPeer, peerAgentId } from "../core/peer.ts";
import { INBOX_EXPIRES_MS } from "../core/rules/receipt.ts";
import type { Entry } from "../core/shapes/message.ts";
import type { Run } from "../core/shapes/run.ts";
import type { Session } from "../core/shapes/session.ts";
import { agentIdInKey, peerInKey } from "../core/shapes/session-key.ts";
import { type A2aRuntime, ANSWER_LIMITS } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import { failRun } from "../engine/run/begin.ts";
import type { LaneHandle } from "../engine/run/execution.ts";
import { type EndFacts, publishReceipt } from "../engine/run/finish.ts";
import { getPeer } from "../store/queries/peers.ts";
import { getRemoteTask } from "../store/queries/remote-tasks.ts";
import { insertMark } from "../store/queries/runs/inbox-marks.ts";
import { awaitedUntil } from "../store/queries/runs/waits.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import type { World } from "../world.ts";
import { argsOf, type KeepParts, keepFile, keepTask } from "./a2a.ts";

export interface PeerRun {
  readonly handle: LaneHandle;
  readonly session: Session;
  readonly entries: readonly Entry[];
}

export type PeerTurn = (parts: KeepParts & { readonly world: World }, run: PeerRun) => Promise<EndFacts>;

/** Returns the key of the sending session. The peer's policy needs an agent in it. */
async function senderOf({ store }: Engine, { input }: Run): Promise<string | undefined> {
  const { provenance } = input;
  if (provenance?.kind !== "inter_session") return undefined;
  const key = provenance.sourceSessionKey;
  if (agentIdInKey(key) !== undefined && peerInKey(key) === undefined) return key;
  const session = await getSession(store.db, key);
  return session && `agent:${session.agentId}:main`;
}

interface Addressed {
  readonly peer: PairedPeer;
  readonly agentId: string;
  readonly url: string;
  readonly sender: string;
}

/** Returns the peer and the agent of a run, or why its message cannot be sent. */
async function findAddress(engine: Engine, run: Run): Promise<Addressed | string> {
  const { peer: name, agentId } = peerInKey(run.sessionKey) ?? { peer: "", agentId: "" };
  const peer = await getPeer(engine.store.db, name);
  if (peer === undefined || !isPaired(peer)) return `there is no peer "${name}"`;
  if (peer.url === undefined)
    return `the peer "${name}" has no address: npx parley-gateway peer expose ${name} --address URL`;
  const sender = await senderOf(engine, run);
  if (sender === undefined) return "only sessions of agents can write to a peer; write to your own agent";
  return { peer, agentId, url: peer.url, sender };
}

/** Returns how an agent of a peer is reached: each request is signed by this gateway. */
async function sourceOf(
  { engine, world }: Pick<KeepParts, "engine"> & { readonly world: World },
  { peer, agentId, url }: Pick<Addressed, "peer" | "agentId" | "url">,
): Promise<RemoteSource> {
  const own = await signingKey(engine.store, engine.now());
  return {
    ...{ type: "a2a", card: `${url}/a2a/${agentId}`, key: peer.keyId, allowUnsigned: false },
    authorize({ method, url: target, body }) {
      const { pathname, search } = new URL(target);
      const request = { method, path: pathname + search, body };
      return peerProof(own, { ...request, to: peer.keyId, now: world.clock.now() });
    },
  };
}

/** Returns how the agent of an aborted run is reached, or undefined if its peer is gone. */
export async function sourceOfRun(
  parts: Pick<KeepParts, "engine"> & { readonly world: World },
  run: Run,
): Promise<RemoteSource | undefined> {
  const to = await findAddress(parts.engine, run);
  return typeof to === "string" ? undefined : sourceOf(parts, to);
}

/** Returns the executor. Nothing is sent before the first run. */
export function openPeers(): PeerTurn {
  const agents = new RemoteAgents();
  return async (parts, { handle, session, entries }) => {
    const { engine, world } = parts;
    const { run } = handle;
    const to = await findAddress(engine, run);
    if (typeof to === "string") return failRun(to);
    const { peer, agentId, sender } = to;
    const until = run.acceptedAt + INBOX_EXPIRES_MS;
    let isOffered = (await getRemoteTask(engine.store.db, session.sessionId))?.runId === run.runId;
    await handle.confirm();
    const args: RemoteTurnArgs = {
      ...(await argsOf({ store: engine.store, world }, { handle, session, entries })),
      agentId: peerAgentId(peer.name, agentId),
      limits: ANSWER_LIMITS,
      contextTokens: 0,
      runtime: await sourceOf(parts, to),
      toPeer: {
        text: run.input.text,
        images: run.input.images ?? [],
        until,
        metadata: { [SENDER_FIELD]: sender },
        ...optional({ awaitedUntil: await awaitedUntil(engine.store.db, run.runId) }),
      },
      async write(state) {
        const hasTask = state.taskId !== undefined;
        const isKept = await keepTask(parts, { handle, session }, state, async (unit) => {
          if (hasTask && (await insertMark(unit.tx, run, { offeredAt: unit.now })))
            publishReceipt(unit, run, "offered");
        });
        isOffered ||= isKept && hasTask;
        return isKept;
      },
      keep: (callId, file) => keepFile(parts, { handle, session }, callId, file),
      onRetry: () => {},
    };
    const end = await handle.elsewhere(() => agents.turn(args));
    if (end.kind === "ok") return { state: "ok", reply: end.text, model: "peer" };
    if (end.kind === "aborted")
      return { state: "aborted", code: "run_aborted", error: "the run was aborted" };
    const isLate = !isOffered && world.clock.now() >= until;
    if (isLate) return { state: "timeout", code: "run_timeout", error: end.error };
    return failRun(end.error, end.code);
  };
}

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
