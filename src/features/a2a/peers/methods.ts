// Owns the methods about peers: other gateways whose agents talk with agents of this one.
// They concern all agents, so they need a token that covers every session.

import { optional } from "../../../core/optional.ts";
import { fail, ok } from "../../../core/shapes/errors.ts";
import type { Unit } from "../../../engine/unit.ts";
import {
  answerAfter,
  type BasicDeps,
  type CallContext,
  type FeatureDeps,
  type Methods,
} from "../../../gateway/call.ts";
import { signingKey } from "../key.ts";
import type { PEER_METHODS, PeerEntry } from "./contract.ts";
import { agentsOf, pairAt } from "./dial.ts";
import { beginPairing, changePeer, invitePeer, noteOffers, removePeer } from "./pairing.ts";
import { isPaired, type Peer } from "./peer.ts";
import { listPeers } from "./store.ts";

interface Problem {
  readonly problem?: string;
  readonly isRefused?: boolean;
}

function entryOf(peer: Peer, now: number, { problem, isRefused }: Problem = {}): PeerEntry {
  const { name, url, exposes, offers, keyId, codeExpiresAt } = peer;
  const isInvited = !isPaired(peer);
  const paired = isRefused === true ? "refused" : "paired";
  return {
    ...{ name, exposes: [...exposes], offers: [...offers] },
    state: isInvited ? ((codeExpiresAt ?? 0) > now ? "invited" : "expired") : paired,
    ...optional({ url, key: keyId, problem }),
    ...(isInvited ? optional({ codeExpiresAtMs: codeExpiresAt }) : {}),
  };
}

/** Asks a peer for its agents. Returns why it could not be asked, if so. */
async function askPeer(deps: BasicDeps, peer: Peer): Promise<{ peer: Peer } & Problem> {
  const { url } = peer;
  if (!isPaired(peer) || url === undefined) return { peer };
  const offers = await agentsOf(deps, { ...peer, url });
  if (!offers.ok) {
    const isRefused = offers.details?.status === 401;
    return { peer, problem: deps.world.redactor.mask(offers.error), isRefused };
  }
  await noteOffers(deps, peer.name, offers.value);
  return { peer: { ...peer, offers: offers.value } };
}

const answerOf = (peer: Peer, { engine }: BasicDeps) =>
  ({ ok: true, peer: entryOf(peer, engine.now()) }) as const;

/** Stores the answer about a changed peer. A pairing code is not in it, because it is not stored. */
const rememberPeer =
  (ctx: CallContext) =>
  (unit: Unit, peer: Peer): Promise<void> =>
    ctx.remember(unit, answerOf(peer, ctx.deps));

export const peerMethods: Methods<keyof typeof PEER_METHODS, FeatureDeps> = {
  "peers.list": {
    async handle({ deps }) {
      const peers = await listPeers(deps.engine.store.db);
      const asked = await Promise.all(peers.map((peer) => askPeer(deps, peer)));
      const ts = deps.engine.now();
      return ok({ ts, peers: asked.map(({ peer, ...problem }) => entryOf(peer, ts, problem)) });
    },
  },
  "peers.add": {
    async handle(ctx, { name, url, code, agents = [] }) {
      const { deps } = ctx;
      const wishes = { name, url, exposes: agents };
      if (code === undefined) {
        const made = await invitePeer(deps, wishes, rememberPeer(ctx));
        if (!made.ok) return made;
        return ok({ ...answerOf(made.value.peer, deps), code: made.value.code });
      }
      if (url === undefined) return fail("invalid_argument", "url is required with a code");
      const own = await signingKey(deps.engine.store, deps.engine.now());
      const begun = await beginPairing(deps, { ...wishes, code, own });
      if (!begun.ok) return begun;
      const answer = await pairAt(deps, url, begun.value.request);
      if (!answer.ok) return answer;
      const peer = await begun.value.finish(answer.value, rememberPeer(ctx));
      return peer.ok ? ok(answerOf(peer.value, deps)) : peer;
    },
  },
  "peers.update": {
    async handle(ctx, { name, url, agents }) {
      const { deps } = ctx;
      const answer = (peer: Peer) => answerOf(peer, deps);
      return answerAfter(ctx, answer, (also) => changePeer(deps, name, { url, exposes: agents }, also));
    },
  },
  "peers.remove": {
    async handle(ctx, { name }) {
      const describeRemoval = (peer: Peer) => ({ ok: true, name: peer.name }) as const;
      return answerAfter(ctx, describeRemoval, (also) => removePeer(ctx.deps, name, also));
    },
  },
};
