// Reads the card of an agent elsewhere, checks it, and opens a client for the agent.
// RC1: nothing is sent to another host than the card's, and no redirect is followed.
// RC2: a card counts only if the configured key has signed it, unless the settings allow an unsigned one.

import { createHash } from "node:crypto";
import { AGENT_CARD_PATH, AgentCard, verifyAgentCardSignature } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { fieldsOf, isObject, jsonOf } from "../../../core/json.ts";
import { JsonMeter } from "../../../core/meter.ts";
import type { Code } from "../../../core/shapes/errors.ts";
import { cut } from "../../../core/text/cut.ts";
import { boundedBody } from "../../../world/bounded-body.ts";
import { AddressRefused, connectionCause, type Fetch, outgoingFetch } from "../../../world/outgoing.ts";
import type { A2aRuntime } from "../settings.ts";

const CONNECT_SECONDS = 10;
/** Maximum bytes of a card or of a key set. */
const DOCUMENT_MAX_BYTES = 256 * 1024;
/** Maximum bytes of any other answer: more than the largest one whose files are kept. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

const WORDS_MAX_CHARS = 300;
const EVENTS = /\btext\/event-stream\b/i;

/** The agent or its card cannot be used. The message is for people. */
export class AgentRefused extends Error {}

/** The agent takes no request now. Nothing was accepted. */
export class AgentBusy extends Error {}

/** Statuses of an agent that takes no request now, and of one that does not accept the token. */
const BUSY = [429, 503];
const DENIED = [401, 403];
/** Codes of a peer's refusals that only a person can end. Wrong clocks and proxies refuse for a while. */
const FINAL: readonly unknown[] = ["peer_unknown", "not_visible"] satisfies Code[];

/** Throws if the status says that the request was not accepted. `isPeer`: a peer says why in its answer. */
async function checkStatus({ status, body }: Response, isPeer: boolean): Promise<void> {
  if (BUSY.includes(status)) throw new AgentBusy(`it takes no requests now (HTTP ${status})`);
  if (!DENIED.includes(status)) return;
  if (!isPeer) throw new AgentRefused(`it refuses the token (HTTP ${status})`);
  const read = fieldsOf(jsonOf((await boundedBody(body, DOCUMENT_MAX_BYTES)) ?? ""));
  const { message, details } = fieldsOf(read.error);
  const why = typeof message === "string" ? `: ${cut(message, WORDS_MAX_CHARS)}` : "";
  const text = `it refuses this gateway (HTTP ${status})${why}`;
  throw FINAL.includes(fieldsOf(details).code) ? new AgentRefused(text) : new AgentBusy(text);
}

/** A request before it is sent. */
export interface UnsentRequest {
  readonly method: string;
  readonly url: string;
  readonly body: string;
}

/** How to reach an agent, and whom to trust. */
export interface RemoteSource extends A2aRuntime {
  /** Returns the Authorization header of a request. Default: the token as a bearer token. */
  readonly authorize?: (request: UnsentRequest) => string;
}

/** An agent elsewhere, whose card was checked. */
export interface RemoteAgent {
  readonly card: AgentCard;
  readonly client: Client;
  /** Thumbprint (RFC 7638) of the key that signed the card. Absent: it is not signed. */
  readonly key?: string;
}

/**
 * Returns the answer with a body that fails after this many bytes, so that a longer one is never held, and
 * when one message in it has too many values.
 */
function limitBody(answer: Response, maxBytes: number, error: string, accept = ""): Response {
  const isStream = [accept, answer.headers.get("content-type") ?? ""].every((one) => EVENTS.test(one));
  const meter = new JsonMeter(isStream ? "event" : "body");
  let left = maxBytes;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      left -= piece.length;
      const problem = left < 0 ? error : meter.add(piece);
      if (problem !== undefined) throw new AgentRefused(problem);
      controller.enqueue(piece);
    },
  });
  const { status, headers } = answer;
  return new Response(answer.body?.pipeThrough(count) ?? null, { status, headers });
}

/** Returns a fetch that refuses long documents. */
function documentFetch(inner: Fetch): Fetch {
  return async (input, init) => {
    const answer = await inner(input, init);
    if (answer.status >= 500) throw new AgentBusy(`it cannot show its card now (HTTP ${answer.status})`);
    if (!answer.ok) throw new AgentRefused(`its card cannot be read (HTTP ${answer.status})`);
    return limitBody(answer, DOCUMENT_MAX_BYTES, "its card or its keys are too long");
  };
}

/** Returns the key that verifies the card, or undefined if the card has no signature. */
async function signerOf(card: AgentCard, read: Fetch): Promise<string | undefined> {
  if (card.signatures.length === 0) return undefined;
  let signer: string | undefined;
  let unread: unknown;
  const keysAt = async (jku: string): Promise<unknown> => {
    try {
      return fieldsOf(await (await read(jku)).json()).keys;
    } catch (error) {
      // The library takes this for a wrong signature, although the agent may only be away.
      unread = error;
      throw error;
    }
  };
  const verify = verifyAgentCardSignature(async (kid, jku) => {
    if (jku === undefined) throw new AgentRefused("its card does not say where its keys are (jku)");
    const keys = await keysAt(jku);
    const found = Array.isArray(keys) ? keys.find((one) => isObject(one) && one.kid === kid) : undefined;
    if (!isObject(found)) throw new AgentRefused("the key of its card is not among its keys");
    // The settings name the thumbprint of a key.
    const { crv, e, kty, n, x, y } = found;
    const named = Object.entries({ crv, e, kty, n, x, y }).filter(([, value]) => value !== undefined);
    signer = createHash("sha256")
      .update(JSON.stringify(Object.fromEntries(named)))
      .digest("base64url");
    return found;
  });
  try {
    await verify(card);
  } catch (error) {
    if (error instanceof AgentRefused) throw error;
    throw unread ?? new AgentRefused("the signature of its card is wrong");
  }
  return signer;
}

function checkSigner(signer: string | undefined, { key, allowUnsigned }: A2aRuntime): void {
  if (key === undefined && allowUnsigned) return;
  if (signer === undefined) throw new AgentRefused("its card is not signed (runtime.allowUnsigned)");
  if (signer === key) return;
  throw new AgentRefused(`its card is signed by the key ${signer}, and runtime.key is ${key ?? "not set"}`);
}

/** Runs a step that reads a card. An error that is not about the connection is one of the card. */
async function readStep<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    const isOurs = [AgentRefused, AgentBusy, AddressRefused].some((one) => error instanceof one);
    if (isOurs || isConnectionError(error)) throw error;
    throw new AgentRefused("its card is not one of an A2A 1.0 agent that can be used");
  }
}

/** Returns whether an error comes from the connection instead of the answer. */
export function isConnectionError(error: unknown): boolean {
  const { cause, name } = (error ?? {}) as { cause?: unknown; name?: unknown };
  if (name === "AbortError" || name === "TimeoutError") return true;
  if (connectionCause(error) !== undefined) return true;
  return cause !== undefined && cause !== error && isConnectionError(cause);
}

/** Reads a card without deciding whether to trust it. */
async function readCard(
  { card: url, token, authorize }: Pick<RemoteSource, "card" | "token" | "authorize">,
  signal: AbortSignal,
): Promise<RemoteAgent> {
  const guarded = outgoingFetch("agent", url, { connectTimeoutSeconds: CONNECT_SECONDS });
  const fetchImpl: Fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    if (authorize !== undefined) {
      const body = typeof init?.body === "string" ? init.body : "";
      headers.set("authorization", authorize({ method: init?.method ?? "GET", url: String(input), body }));
    }
    const answer = await guarded(input, { ...init, headers });
    await checkStatus(answer, authorize !== undefined);
    const accept = headers.get("accept") ?? undefined;
    return limitBody(answer, ANSWER_MAX_BYTES, "its answer is longer than 64 MiB", accept);
  };
  const read = documentFetch((input, init) => fetchImpl(input, { ...init, signal }));
  const path = new URL(url).pathname.endsWith(".json") ? "" : AGENT_CARD_PATH;
  const base = path === "" || url.endsWith("/") ? url : `${url}/`;
  const resolver = new DefaultAgentCardResolver({ fetchImpl: read });
  const card = await readStep(async () => AgentCard.fromJSON(fieldsOf(await resolver.resolve(base, path))));
  const key = await readStep(() => signerOf(card, read));
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
  });
  const client = await readStep(() => factory.createFromAgentCard(card));
  return { card, client, ...(key === undefined ? {} : { key }) };
}

/** Opens a client for an agent. Throws `AgentRefused` if its card must not be used. */
export async function openRemote(runtime: RemoteSource, signal: AbortSignal): Promise<RemoteAgent> {
  const remote = await readCard(runtime, signal);
  checkSigner(remote.key, runtime);
  return remote;
}
