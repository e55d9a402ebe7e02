// Executes a claimed run of a session of a peer: takes its message to the peer, and brings back the answer.
// PX1: the message stays queued while the peer is away. The run holds no slot meanwhile, and a restart of
//      either gateway neither loses nor repeats the message.

import { optional } from "../../../core/optional.ts";
import { peerAgentId } from "../../../core/peer.ts";
import { countedLabels, labelFrom, labelsKnownTo } from "../../../core/rules/labels/labels.ts";
import { readPeerLabels, writePeerLabels } from "../../../core/rules/labels/peer-labels.ts";
import { INBOX_EXPIRES_MS } from "../../../core/rules/receipt.ts";
import type { Run } from "../../../core/shapes/run.ts";
import { agentIdInKey, peerInKey } from "../../../core/shapes/session-key.ts";
import { ANSWER_LIMITS } from "../../../core/shapes/settings/settings.ts";
import type { Engine } from "../../../engine/engine.ts";
import { failRun } from "../../../engine/run/begin.ts";
import { publishReceipt } from "../../../engine/run/finish.ts";
import type { Unit } from "../../../engine/unit.ts";
import type { OutsideRuntime, RuntimeParts } from "../../../feature.ts";
import { labelsOfChain } from "../../../store/queries/labels.ts";
import { getRemoteTask, type RemoteTask } from "../../../store/queries/remote-tasks.ts";
import { insertMark } from "../../../store/queries/runs/inbox-marks.ts";
import { awaitedUntil } from "../../../store/queries/runs/waits.ts";
import { getSession } from "../../../store/queries/sessions/sessions.ts";
import type { World } from "../../../world.ts";
import { LABELS_FIELD, SENDER_FIELD } from "../fields.ts";
import { signingKey } from "../key.ts";
import { RemoteAgents } from "../remote/remote.ts";
import type { RemoteSource } from "../remote/remote-card.ts";
import { cancelTask, labelAnswer, takeTurn } from "../remote/run.ts";
import { isPaired, type PairedPeer } from "./peer.ts";
import { peerProof } from "./proof.ts";
import { getPeer } from "./store.ts";

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
  engine: Engine,
  world: World,
  { peer, agentId, url }: Pick<Addressed, "peer" | "agentId" | "url">,
): Promise<RemoteSource> {
  const own = await signingKey(engine.store, engine.now());
  return {
    card: `${url}/a2a/${agentId}`,
    key: peer.keyId,
    allowUnsigned: false,
    authorize({ method, url: target, body }) {
      const { pathname, search } = new URL(target);
      const request = { method, path: pathname + search, body };
      return peerProof(own, { ...request, to: peer.keyId, now: world.clock.now() });
    },
  };
}

/** Opens the runtime of agents of peers. Nothing is sent before the first run. */
export function openRuntime(parts: RuntimeParts): OutsideRuntime {
  const agents = new RemoteAgents();
  return {
    async turn(peerRun) {
      const { handle, session, world } = peerRun;
      const engine = parts.engine();
      const { run } = handle;
      const source = `peer ${peerInKey(run.sessionKey)?.peer}`;
      await labelAnswer(engine, peerRun, labelFrom("outside", source, engine.now(), run.runId));
      const to = await findAddress(engine, run);
      if (typeof to === "string") return failRun(to);
      const { peer, agentId, sender } = to;
      const until = run.acceptedAt + INBOX_EXPIRES_MS;
      let isOffered = (await getRemoteTask(engine.store.db, session.sessionId))?.runId === run.runId;
      await handle.confirm();
      const { settings } = peerRun;
      // The session has all labels of its message.
      const known = labelsKnownTo(settings, session) && (await labelsOfChain(engine.store.db, run.chainId));
      const labels = countedLabels(settings, known);
      const message = {
        agentId: peerAgentId(peer.name, agentId),
        limits: ANSWER_LIMITS,
        contextTokens: 0,
        runtime: await sourceOf(engine, world, to),
        toPeer: {
          text: run.input.text,
          images: run.input.images ?? [],
          until,
          metadata: { [SENDER_FIELD]: sender, [LABELS_FIELD]: writePeerLabels(peer.name, labels) },
          noteLabels: (given: unknown) =>
            labelAnswer(engine, peerRun, readPeerLabels(peer.name, given, engine.now())),
          ...optional({ awaitedUntil: await awaitedUntil(engine.store.db, run.runId) }),
        },
        async also(unit: Unit, { taskId }: RemoteTask) {
          if (taskId === undefined) return;
          unit.after(() => {
            isOffered = true;
          });
          if (await insertMark(unit.tx, run, { offeredAt: unit.now })) publishReceipt(unit, run, "offered");
        },
      };
      const end = await handle.elsewhere(() => takeTurn(agents, engine, peerRun, message));
      if (end.kind === "ok") return { state: "ok", reply: end.text, model: "peer" };
      if (end.kind === "aborted")
        return { state: "aborted", code: "run_aborted", error: "the run was aborted" };
      const isLate = !isOffered && world.clock.now() >= until;
      if (isLate) return { state: "timeout", code: "run_timeout", error: end.error };
      return failRun(end.error, end.code);
    },
    async noteAborted(run) {
      const engine = parts.engine();
      const to = await findAddress(engine, run);
      if (typeof to !== "string") await cancelTask(parts, run, await sourceOf(engine, parts.world, to));
    },
  };
}
