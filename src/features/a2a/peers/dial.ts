// Sends the requests of this gateway to a peer that are not messages: pairing, and asking for its agents.
// PD1: a request goes to the peer's address only, follows no redirect, and its answer has at most 64 KB.

import { fieldsOf, jsonOf } from "../../../core/json.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { cut } from "../../../core/text/cut.ts";
import type { BasicDeps } from "../../../gateway/call.ts";
import { boundedBody } from "../../../world/bounded-body.ts";
import { AddressRefused, connectionCause, outgoingFetch } from "../../../world/outgoing.ts";
import { timeLimit } from "../../../world/pause.ts";
import { signingKey } from "../key.ts";
import { AGENTS_PATH, PAIR_PATH, type PairedPeer } from "./peer.ts";
import { peerProof } from "./proof.ts";

const WAIT_MS = 10_000;
const ANSWER_MAX_BYTES = 64 * 1024;
const WORDS_MAX_CHARS = 300;

async function ask(
  { world }: Pick<BasicDeps, "world">,
  url: string,
  init: RequestInit,
): Promise<Result<Record<string, unknown>>> {
  const { origin } = new URL(url);
  const unavailable = (text: string) => fail("peer_unavailable", `the gateway at ${origin} ${text}`);
  using limit = timeLimit(world.clock, WAIT_MS);
  try {
    const send = outgoingFetch("agent", url, { connectTimeoutSeconds: WAIT_MS / 1000 });
    const answer = await send(url, { ...init, signal: limit.signal });
    const body = await boundedBody(answer.body, ANSWER_MAX_BYTES);
    if (body === undefined) return unavailable("sent too long an answer");
    const read = fieldsOf(jsonOf(body));
    if (answer.ok) return ok(read);
    const { message } = fieldsOf(read.error);
    const why = typeof message === "string" ? cut(message, WORDS_MAX_CHARS) : "it is not a Parley gateway";
    const { status } = answer;
    return { ...unavailable(`answered with HTTP ${status}: ${why}`), details: { status } };
  } catch (error) {
    if (error instanceof AddressRefused) return unavailable(error.message);
    const cause = connectionCause(error);
    return unavailable(cause === undefined ? "cannot be reached" : `cannot be reached (${cause})`);
  }
}

/** Sends a pairing request. Returns the sealed answer. */
export async function pairAt(
  deps: Pick<BasicDeps, "world">,
  url: string,
  request: string,
): Promise<Result<string>> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ request });
  const answer = await ask(deps, new URL(PAIR_PATH, url).href, { method: "POST", headers, body });
  if (!answer.ok) return answer;
  return ok(typeof answer.value.answer === "string" ? answer.value.answer : "");
}

/** Asks a peer which of its agents this gateway may see. */
export async function agentsOf(
  deps: BasicDeps,
  peer: PairedPeer & { readonly url: string },
): Promise<Result<string[]>> {
  const { engine } = deps;
  const own = await signingKey(engine.store, engine.now());
  const request = { method: "GET", path: AGENTS_PATH, body: "", to: peer.keyId, now: engine.now() };
  const headers = { authorization: peerProof(own, request) };
  const answer = await ask(deps, new URL(AGENTS_PATH, peer.url).href, { headers });
  if (!answer.ok) return answer;
  const { agents } = answer.value;
  return ok(Array.isArray(agents) ? agents.filter((one) => typeof one === "string") : []);
}
