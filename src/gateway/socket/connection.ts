// Owns one socket: challenge, connect, then requests and their answers, until it closes.
// Before `connect` has succeeded, only that one request is read, within a deadline and a small size limit.
// Every request is answered once, `agent` twice; answers carry the request's id, in any order.
// Requests that write begin in the order of their arrival, so messages are accepted in that order (I3).
// C4: requests that read run one after another, so one client cannot make the gateway hold many large answers
//      at once, and other work can run between two of them.
// When the socket closes, its pending waits are released; runs continue.
// After a frame was read, the length of its strings is limited, but its params are not validated yet.

import type { RawData, WebSocket } from "ws";
import { checkConnect } from "../../contract/check.ts";
import type {
  ConnectParams,
  DeviceProof,
  HelloOk,
  RequestFrame,
  ResponseFrame,
} from "../../contract/frames.ts";
import { idempotencyOf } from "../../contract/idempotency.ts";
import { isMethod, methodOf } from "../../contract/methods.ts";
import {
  CLOSE,
  CONNECT_TIMEOUT_MS,
  MAX_FRAME_BYTES,
  MAX_PAYLOAD_BEFORE_CONNECT_BYTES,
  MAX_PAYLOAD_OF_NODE_BYTES,
  PENDING_REQUESTS_MAX,
  PROTOCOL_VERSIONS,
} from "../../contract/protocol.ts";
import { isObject, readJson } from "../../core/json.ts";
import { jsonInSteps } from "../../core/json-steps.ts";
import { optional } from "../../core/optional.ts";
import { createPaces } from "../../core/pace.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Timer, World } from "../../world.ts";
import { thrown, wireError } from "../answer.ts";
import type { Authority, Caller } from "../auth.ts";
import { verifyDevice } from "../device.ts";
import type { GatewayShares } from "../shares.ts";
import { FrameBytes } from "./frame-bytes.ts";
import { createOutlet, type EncodedEvent, isSendable, type Outlet } from "./outlet.ts";

/** A socket that does not close after this long is cut off. */
const CLOSE_GRACE_MS = 5_000;
/** Like `CLOSE_GRACE_MS`, for a client that sent too much. Its socket is not read during this time. */
const FLOOD_GRACE_MS = 1_000;
const CLOSE_REASON_MAX_BYTES = 120;

const TOO_MANY_CLIENTS = fail("rate_limited", "this token has too many connections", {
  hint: "Close some of them, or try again in a moment.",
});

/** A method's answer: one at once, and for `agent` a second one when the run has ended. */
export interface Answer {
  readonly result: Result<unknown>;
  readonly later?: Promise<Result<unknown>>;
}

interface ConnectedNode {
  readonly id: string;
  readonly name: string;
}

/** Admits connections with the role `node`. */
export interface NodeDoor {
  admit(
    caller: Caller,
    params: ConnectParams,
    at: { readonly proof: DeviceProof | undefined; readonly remote: string; readonly connId: string },
  ): Promise<Result<ConnectedNode>>;
  /** Makes an admitted connection the node's current one. Call the result when the connection ends. */
  join(member: Member, node: ConnectedNode): () => void;
}

/** A connected client, as the rest of the gateway sees it. */
export interface Member {
  readonly connId: string;
  readonly caller: Caller;
  readonly params: ConnectParams;
  /** Set if the connection is a node's. */
  readonly node?: ConnectedNode;
  event(event: EncodedEvent): void;
  close(code: number, reason: string): void;
}

export interface ConnectionParts {
  readonly world: World;
  readonly authority: Authority;
  readonly shares: GatewayShares;
  readonly maxBufferedBytes: number;
  /** Returns the hello answer without the fields that the connection itself knows. */
  hello(member: Member): Promise<Omit<HelloOk, "type" | "protocol" | "auth">>;
  readonly admitNode: NodeDoor["admit"];
  /** Creates a new token for the connected device. Fails if its current token was revoked. */
  renewDeviceToken(
    caller: Caller,
    at: { readonly deviceId: string; readonly client: ConnectParams["client"] },
  ): Promise<Result<string | undefined>>;
  /** Called when the connect request arrives. */
  asked?(): void;
  /** Registers the member with the gateway; the returned function unregisters it. */
  join(member: Member): () => void;
  call(
    caller: Caller,
    method: string,
    params: unknown,
    signal: AbortSignal,
    protocol: number,
  ): Promise<Answer>;
}

interface PeerSocket {
  readonly socket: WebSocket;
  readonly remote: string;
  /** Calls back with the size of each piece that arrives, until the returned function is called. */
  countBytes(count: (bytes: number) => void): () => void;
  /** Buffers writes until the returned function is called. Absent if the socket does not support it. */
  hold?(): () => void;
}

type RequestQueue = "read" | "write";

const ID_MAX_CHARS = 200;
const METHOD_MAX_CHARS = 100;

/** A frame that can't be read; `id` is the id of the request, if it is valid. */
interface BadFrame {
  readonly id: string;
  readonly failure: Failure;
}

function readFrame(text: string): { request: RequestFrame } | { bad: BadFrame } {
  const parsed = readJson(text);
  if (!parsed.ok) return { bad: { id: "invalid", failure: parsed } };
  const frame = parsed.value;
  if (frame === undefined)
    return { bad: { id: "invalid", failure: fail("invalid_argument", "the message is not valid JSON") } };
  const own = (field: string): unknown =>
    isObject(frame) && Object.hasOwn(frame, field) ? frame[field] : undefined;
  const id = own("id");
  const usable = typeof id === "string" && id !== "" && id.length <= ID_MAX_CHARS;
  const bad = (why: string) => ({
    bad: {
      id: usable ? id : "invalid",
      failure: fail("invalid_argument", why, {
        hint: 'A request is {"type":"req","id":"…","method":"…","params":{…}}',
      }),
    },
  });
  if (!isObject(frame)) return bad("a frame must be one JSON object");
  if (own("type") !== "req") return bad('a client sends frames of type "req" only');
  if (!usable) return bad(`id must be a string of 1 to ${ID_MAX_CHARS} characters`);
  const method = own("method");
  if (typeof method !== "string" || method === "" || method.length > METHOD_MAX_CHARS) {
    return bad(`method must be a string of 1 to ${METHOD_MAX_CHARS} characters`);
  }
  const params = own("params");
  return { request: { type: "req", id, method, ...optional({ params }) } };
}

/** Returns the queue of a method. Methods that may take a long time use no queue. */
function queueOf(method: string): RequestQueue | undefined {
  if (!isMethod(method) || methodOf(method).takesLong) return undefined;
  return idempotencyOf(method) === "none" ? "read" : "write";
}

/**
 * Returns the device that signed the challenge. Refuses a signature without a nonce, because it could be a
 * replay.
 */
function signerOf(proof: DeviceProof | undefined): string | undefined {
  return proof?.nonce === undefined ? undefined : proof.id;
}

export class Connection {
  readonly #parts: ConnectionParts;
  readonly #peer: PeerSocket;
  readonly #outlet: Outlet;
  readonly #connId: string;
  readonly #nonce: string;
  readonly #gone = new AbortController();
  #deadline: Timer;
  #stopCounting: () => void;
  #bytesBefore = 0;
  #state: "new" | "connecting" | "ready" | "closed" = "new";
  #early: RequestFrame[] = [];
  #caller: Caller | undefined;
  /** Set by `connect`. */
  #protocol = 0;
  /** Bytes counted against the caller's share; absent before the caller is known. */
  #bytes: FrameBytes | undefined;
  #leave: () => void = () => {};
  #pending = 0;
  readonly #queues: Record<RequestQueue, Promise<unknown>> = {
    read: Promise.resolve(),
    write: Promise.resolve(),
  };

  constructor(parts: ConnectionParts, peer: PeerSocket) {
    const { clock, ids } = parts.world;
    this.#parts = parts;
    this.#peer = peer;
    this.#connId = ids.uuid();
    this.#nonce = ids.uuid();
    this.#outlet = createOutlet(peer.socket, {
      maxBufferedBytes: parts.maxBufferedBytes,
      close: (code, reason) => this.close(code, reason),
      hold: peer.hold?.bind(peer),
    });
    this.#deadline = clock.after(CONNECT_TIMEOUT_MS, () => {
      // Check only after pending input was read: if this process was slow, the request may have arrived in
      // time.
      this.#deadline = clock.after(0, () =>
        this.close(CLOSE.policy, `no connect request within ${CONNECT_TIMEOUT_MS / 1000} s`),
      );
    });
    this.#stopCounting = peer.countBytes((bytes) => {
      if (this.#bytes === undefined) this.#countBefore(bytes);
      else if (!this.#bytes.came(bytes)) {
        this.#peer.socket.pause();
        this.close(CLOSE.tryAgain, "this token has too many bytes of unanswered requests", FLOOD_GRACE_MS);
      }
    });
    peer.socket.on("message", (data, isBinary) => this.#onMessage(data, isBinary));
    peer.socket.on("error", (error) => parts.world.log.debug({ err: error }, "socket error"));
    peer.socket.on("close", () => {
      if (this.#state !== "closed") this.#release();
    });
    const challenge = { nonce: this.#nonce, ts: clock.now() };
    this.#send({ type: "event", event: "connect.challenge", payload: challenge });
  }

  /** Sends a reason, stops reading requests, and cuts the socket off if the peer doesn't close it. */
  close(code: number, reason: string, graceMs = CLOSE_GRACE_MS): void {
    if (this.#state === "closed") return;
    this.#release();
    const { socket } = this.#peer;
    const { clock } = this.#parts.world;
    // A close frame has room for 123 bytes of the reason; the answer before it has the whole text.
    socket.close(
      code,
      Buffer.from(reason)
        .subarray(0, CLOSE_REASON_MAX_BYTES)
        .toString()
        .replace(/\uFFFD+$/, ""),
    );
    const cutOff = clock.after(graceMs, () => socket.terminate());
    socket.once("close", () => cutOff.cancel());
  }

  /** Ends the connection without a reason. */
  cut(): void {
    this.#peer.socket.terminate();
  }

  #release(): void {
    this.#state = "closed";
    this.#deadline.cancel();
    this.#stopCounting();
    this.#leave();
    this.#bytes?.settle();
    if (this.#caller !== undefined) this.#parts.shares.clients.give(this.#caller.id);
    this.#gone.abort();
    this.#early = [];
  }

  #countBefore(bytes: number): void {
    this.#bytesBefore += bytes;
    // Continue to read even if this piece has closed the connection, to get the peer's close frame.
    if (this.#bytesBefore <= MAX_PAYLOAD_BEFORE_CONNECT_BYTES || this.#isClosed()) return;
    this.#peer.socket.pause();
    this.close(
      CLOSE.tooBig,
      `more than ${MAX_PAYLOAD_BEFORE_CONNECT_BYTES} bytes before connect`,
      FLOOD_GRACE_MS,
    );
  }

  #send(frame: object): void {
    this.#outlet.frame(JSON.stringify(frame));
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    if (this.#state === "closed") return;
    this.#bytes?.settle();
    if (isBinary) {
      this.close(CLOSE.unsupported, "binary messages are not supported; send JSON as text");
      return;
    }
    const text = data.toString();
    // The socket applies the general limit. The limit for nodes is lower.
    if (this.#caller?.role === "node" && Buffer.byteLength(text) > MAX_PAYLOAD_OF_NODE_BYTES) {
      this.close(CLOSE.tooBig, `a node's message has at most ${MAX_PAYLOAD_OF_NODE_BYTES} bytes`);
      return;
    }
    const read = readFrame(text);
    if ("bad" in read) {
      this.#send(this.#failure(read.bad.id, read.bad.failure));
      if (this.#state !== "ready") this.close(CLOSE.policy, "the first message must be a connect request");
      return;
    }
    if (this.#state === "ready") {
      this.#request(read.request, text.length);
      return;
    }
    // The peer may send only a limited number of bytes before it has connected.
    if (this.#state === "connecting") {
      this.#early.push(read.request);
      return;
    }
    this.#state = "connecting";
    // Cancel the deadline, because the duration of the next steps does not depend on the client.
    this.#deadline.cancel();
    this.#parts.asked?.();
    void this.#connect(read.request);
  }

  async #connect(request: RequestFrame): Promise<void> {
    try {
      const accepted = await this.#admit(request);
      if (this.#isClosed()) return;
      if (!accepted.ok) return this.#reject(request.id, accepted);
      const { member, protocol, deviceToken } = accepted.value;
      const { caller } = member;
      const device = optional({ deviceToken });
      const auth = { ...device, role: caller.role, scopes: [...caller.scopes, ...(caller.parts ?? [])] };
      const hello: HelloOk = { type: "hello-ok", protocol, ...(await this.#parts.hello(member)), auth };
      if (this.#isClosed()) return;
      if (!this.#parts.shares.clients.take(caller.id)) return this.#reject(request.id, TOO_MANY_CLIENTS);
      this.#caller = caller;
      this.#protocol = protocol;
      this.#bytes = new FrameBytes(this.#parts.shares.bytes, caller.id);
      this.#state = "ready";
      this.#send({ type: "res", id: request.id, ok: true, payload: hello });
      this.#leave = this.#parts.join(member);
      const early = this.#early.splice(0);
      for (const waiting of early) this.#request(waiting, 0);
    } catch (error) {
      if (this.#isClosed()) return;
      this.#reject(request.id, thrown(this.#parts.world, error, "connect"));
    }
  }

  /**
   * Returns whether the connection is closed now. A method is needed, because the state may change during an
   * await.
   */
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #failure(id: string, failure: Failure): ResponseFrame {
    return { type: "res", id, ok: false, error: wireError(failure, this.#parts.world.redactor) };
  }

  #reject(id: string, failure: Failure): void {
    this.#send(this.#failure(id, failure));
    const code = failure.details?.supported === undefined ? CLOSE.policy : CLOSE.protocol;
    this.close(code, failure.error);
  }

  async #admit(
    request: RequestFrame,
  ): Promise<Result<{ member: Member; protocol: number; deviceToken: string | undefined }>> {
    if (request.method !== "connect") {
      return fail(
        "invalid_argument",
        `the first request must be "connect", got ${JSON.stringify(request.method)}`,
      );
    }
    const checked = await checkConnect(request.params);
    if (!checked.ok) return checked;
    const params = checked.value;
    const protocol = PROTOCOL_VERSIONS.findLast(
      (one) => one >= params.minProtocol && one <= params.maxProtocol,
    );
    if (protocol === undefined) {
      const asked = `${params.minProtocol} to ${params.maxProtocol}`;
      const spoken = PROTOCOL_VERSIONS.join(" and ");
      return fail(
        "invalid_argument",
        `this gateway supports protocol versions ${spoken}; the client requested ${asked}`,
        {
          details: { supported: PROTOCOL_VERSIONS, expectedProtocol: PROTOCOL_VERSIONS.at(-1) },
        },
      );
    }
    const { auth, role, scopes } = params;
    const token = auth?.token ?? auth?.deviceToken ?? auth?.password;
    const prove = () => verifyDevice(params, this.#nonce, this.#parts.world.clock.now());
    const device = (): Result<string | undefined> => {
      const proven = prove();
      return proven.ok ? ok(signerOf(proven.value)) : proven;
    };
    const claim = { token, role, scopes, device };
    const admitted = await this.#parts.authority.admit(this.#peer.remote, claim);
    if (!admitted.ok) return admitted;
    if (admitted.value.onlyAs !== undefined) {
      return fail("missing_scope", "the token of a session is valid for MCP requests only");
    }
    const proof = prove();
    if (!proof.ok) return proof;
    const renew = async () => {
      if (proof.value === undefined) return ok(undefined);
      return this.#parts.renewDeviceToken(admitted.value, {
        deviceId: proof.value.id,
        client: params.client,
      });
    };
    // A client with a revoked token must not replace the node's own connection.
    const early = admitted.value.device === undefined ? undefined : await renew();
    if (early?.ok === false) return early;
    const node = await this.#nodeOf(admitted.value, params, proof.value);
    if (!node.ok) return node;
    const nodeId = node.value?.id;
    const caller = { ...admitted.value, ...optional({ nodeId, deviceId: signerOf(proof.value) }) };
    const given = early ?? (await renew());
    if (!given.ok) return given;
    const member: Member = {
      connId: this.#connId,
      caller,
      params,
      ...optional({ node: node.value }),
      event: (encoded) => this.#outlet.event(encoded),
      close: (code, reason) => this.close(code, reason),
    };
    return { ok: true, value: { member, protocol, deviceToken: given.value } };
  }

  /** Returns the node, or undefined if this is not a node's connection. */
  async #nodeOf(
    caller: Caller,
    params: ConnectParams,
    proof: DeviceProof | undefined,
  ): Promise<Result<ConnectedNode | undefined>> {
    if (caller.role !== "node") return ok(undefined);
    const at = { proof, remote: this.#peer.remote, connId: this.#connId };
    return this.#parts.admitNode(caller, params, at);
  }

  /** `size`: the frame's length in characters. */
  #request(request: RequestFrame, size: number): void {
    const { id, method } = request;
    if (method === "connect") {
      this.#send(this.#failure(id, fail("invalid_argument", "this connection is already connected")));
      return;
    }
    const place = this.#placeFor(size);
    if (!place.ok) {
      this.#send(this.#failure(id, place));
      return;
    }
    const queue = queueOf(method);
    const begun = queue === undefined ? this.#run(request) : this.#runInQueue(queue, request);
    if (queue !== undefined) this.#queues[queue] = begun;
    void begun.then((later) => later?.last).finally(place.value);
  }

  /** Counts one more request against the limits, until the returned function is called. Fails at a limit. */
  #placeFor(size: number): Result<() => void> {
    const { calls } = this.#parts.shares;
    const who = this.#caller?.id ?? "";
    const refuseRequest = (text: string): Failure =>
      fail("rate_limited", text, { hint: "Wait for some of the answers." });
    if (this.#pending >= PENDING_REQUESTS_MAX) {
      return refuseRequest(`this connection has more than ${PENDING_REQUESTS_MAX} unanswered requests`);
    }
    if (!calls.take(who)) return refuseRequest("this token has too many unanswered requests");
    const letGo = this.#bytes?.hold(size);
    if (letGo === undefined) {
      calls.give(who);
      return refuseRequest("the unanswered requests of this token together exceed the size limit");
    }
    this.#pending++;
    return ok(() => {
      this.#pending--;
      calls.give(who);
      letGo();
    });
  }

  async #runInQueue(
    queue: RequestQueue,
    request: RequestFrame,
  ): Promise<{ last: Promise<void> } | undefined> {
    await this.#queues[queue];
    // The embedded store answers without yielding to the event loop, so other work gets a turn between two
    // reads.
    if (queue === "read") await this.#parts.world.gather?.();
    return this.#run(request);
  }

  /** Answers the request; the returned promise ends after the last answer. Never rejects. */
  async #run(request: RequestFrame): Promise<{ last: Promise<void> } | undefined> {
    const { id, method, params } = request;
    const { world, call } = this.#parts;
    if (this.#isClosed() || this.#caller === undefined) return undefined;
    try {
      const { result, later } = await call(this.#caller, method, params, this.#gone.signal, this.#protocol);
      this.#answer(id, result);
      if (later === undefined) return undefined;
      // Encoded in steps, because the text of a result can be long and is in the answer twice.
      const last = later.then(
        async (second) => {
          if (this.#isClosed()) return;
          const pace = createPaces(this.#parts.world)("with this step");
          const text = await jsonInSteps(this.#responseOf(id, second), pace);
          if (!this.#isClosed()) this.#respond(id, text);
        },
        (error: unknown) => this.#answer(id, thrown(world, error, method)),
      );
      return { last };
    } catch (error) {
      this.#answer(id, thrown(world, error, method));
      return undefined;
    }
  }

  #answer(id: string, result: Result<unknown>): void {
    if (this.#isClosed()) return;
    this.#respond(id, JSON.stringify(this.#responseOf(id, result)));
  }

  /** Sends a response. A client would reconnect and ask again for one that it cannot receive. */
  #respond(id: string, text: string): void {
    if (isSendable(text)) {
      this.#outlet.frame(text);
      return;
    }
    const error = `the answer is larger than ${MAX_FRAME_BYTES} bytes, which no client accepts`;
    this.#send(this.#failure(id, fail("too_large", error, { hint: "Ask for less at once." })));
  }

  #responseOf(id: string, result: Result<unknown>): object {
    return result.ok ? { type: "res", id, ok: true, payload: result.value } : this.#failure(id, result);
  }
}
