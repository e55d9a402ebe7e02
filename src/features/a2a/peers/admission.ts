// Admits the requests of peers. Each must be signed by the key that was pinned when the peer was paired.
// PA1: a peer can do nothing but ask the agents that it may see over A2A: its rights exist only on that path.
// PA2: an address that sends wrong proofs or pairing codes has to wait, like one that sends wrong tokens. One
//      whose key is unknown need not: it costs one look-up, and learns each time that it is no peer.

import type { Context } from "hono";
import { keyRulesOf } from "../../../access/access.ts";
import { fieldsOf } from "../../../core/json.ts";
import { once } from "../../../core/once.ts";
import { expandScopes } from "../../../core/rules/scopes.ts";
import { type Failure, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { mainKeyOf } from "../../../core/shapes/session-key.ts";
import type { Authority, Caller } from "../../../gateway/auth.ts";
import { createGuessLimit } from "../../../gateway/auth.ts";
import type { BasicDeps } from "../../../gateway/call.ts";
import { type Env, peerHeader, readBody, refuse, remoteOf } from "../../../gateway/http/request.ts";
import { signingKey } from "../key.ts";
import { answerPairing, exposedTo } from "./pairing.ts";
import { readProof } from "./proof.ts";
import { peerOfKey } from "./store.ts";

const PAIRING_MAX_BYTES = 64 * 1024;

const UNKNOWN = fail("peer_unknown", "this gateway has no peer with your key", {
  hint: "Pair again: npx parley-gateway peer invite NAME here, npx parley-gateway peer add URL there.",
});

type Admission = Pick<Authority, "admit">;

export interface PeerDoors {
  /** Returns an authority that also admits peers. `c`: the request. */
  authority(c: Context<Env>): Admission;
  /** Pairs with the gateway that knows a code. */
  readonly pair: (c: Context<Env>) => Promise<Response>;
  /** Lists the agents that the calling peer may see. */
  readonly agents: (c: Context<Env>) => Promise<Response>;
}

export function createPeerDoors(deps: BasicDeps): PeerDoors {
  const { engine, world, settings } = deps;
  const guesses = createGuessLimit(world.clock);
  const ownKey = once(() => signingKey(engine.store, engine.now()));

  /** Refuses a request, and counts it as a guess. A right proof is accepted from any address. */
  function refusal(remote: string, failure: Failure): Failure {
    const allowed = guesses.check(remote);
    if (!allowed.ok) return allowed;
    guesses.note(remote);
    return failure;
  }

  async function proven(c: Context<Env>): Promise<Result<Caller>> {
    const remote = remoteOf(c);
    const proof = readProof(peerHeader(c));
    if (proof === undefined || proof.from === "") return refusal(remote, UNKNOWN);
    const peer = await peerOfKey(engine.store.db, proof.from);
    // Not counted as a guess: nobody can guess a key, and a gateway that was removed must learn it each time.
    if (peer?.key === undefined) return UNKNOWN;
    const { pathname, search } = new URL(c.req.url);
    const to = (await ownKey()).publicKey.kid;
    const request = { method: c.req.method, path: pathname + search, to, now: engine.now() };
    const checked = proof.check(peer.key, request);
    if (!checked.ok) return refusal(remote, checked);
    c.set("checkBody", checked.value);
    if (["GET", "HEAD"].includes(request.method)) {
      const empty = checked.value(new Uint8Array());
      if (!empty.ok) return empty;
    }
    const exposes = exposedTo(settings, peer);
    const rules = keyRulesOf(settings);
    const patterns = exposes.map((id) => mainKeyOf(id, { ...rules, scope: "per-sender" }));
    return ok({
      ...{ id: `peer:${proof.from}`, role: "operator", patterns, peer: { name: peer.name, exposes } },
      scopes: expandScopes(["operator.write"]),
    });
  }

  return {
    authority: (c) => ({ admit: () => proven(c) }),
    async pair(c) {
      const remote = remoteOf(c);
      const allowed = guesses.check(remote);
      if (!allowed.ok) return refuse(c, allowed);
      const body = await readBody(c, PAIRING_MAX_BYTES);
      if (!body.ok) return refuse(c, body);
      const { request } = fieldsOf(body.value);
      const answer = await answerPairing(deps, typeof request === "string" ? request : "", await ownKey());
      return answer.ok ? c.json({ answer: answer.value }) : refuse(c, refusal(remote, answer));
    },
    agents: async (c) => c.json({ agents: c.get("caller").peer?.exposes ?? [] }),
  };
}
