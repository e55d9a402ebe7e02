// Owns one connection of a client: the challenge, `connect`, then frames in both directions. It is never
// reopened.
// A connection that receives no frame for three ticks is considered dead.

import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { flat, isFlatDue, joinedDeltas, type TextDelta } from "../../core/text/text-delta.ts";
import type { Timer } from "../../world.ts";
import type { AgentEvent, ChatEvent, ChatMessage } from "../events.ts";
import type { ClientInfo, EventFrame, HelloOk, ResponseFrame } from "../frames.ts";
import { STRICT_VERSION, TEXT_DELTAS } from "../protocol.ts";
import type { DialedSocket, Dialer } from "./dial/dial.ts";
import { aborted, errorOf, GatewayError } from "./error.ts";
import type { ClientWorld, DeviceKey } from "./types.ts";

export interface SocketParts {
  readonly dialer: Dialer;
  readonly url: string;
  readonly token: string | undefined;
  readonly role: "operator" | "node" | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly client: Partial<ClientInfo> | undefined;
  readonly device: DeviceKey | undefined;
  readonly caps: readonly string[] | undefined;
  readonly commands: readonly string[] | undefined;
  /** Time limit for opening the socket and `connect` together. */
  readonly connectTimeoutMs: number;
  readonly world: ClientWorld;
}

/** `chars`: length of the received frame. */
type FrameListener = (frame: ResponseFrame | EventFrame, chars: number) => void;

export interface ClientSocket {
  readonly hello: HelloOk;
  send(frame: object): void;
  /** Calls `onFrame` for every frame after the greeting, then `onEnd` once with the reason of the end. */
  listen(onFrame: FrameListener, onEnd: (error: GatewayError) => void): void;
  close(): void;
}

const CONNECT_ID = "connect";
const SILENT_TICKS_MAX = 3;
/** Time limit for the gateway to answer the close frame. */
const CLOSE_GRACE_MS = 1_000;

function readFrame(text: string): ResponseFrame | EventFrame | undefined {
  try {
    const frame: unknown = JSON.parse(text);
    return isObject(frame) ? (frame as unknown as ResponseFrame | EventFrame) : undefined;
  } catch {
    return undefined;
  }
}

function connectRequest(parts: SocketParts, nonce: string): object {
  const { token, role, scopes, dialer, caps, commands } = parts;
  const own = { id: "parley-client", version: "1", platform: dialer.platform, mode: "backend" };
  const client = { ...own, ...parts.client };
  const at = Math.round(parts.world.clock.now());
  const device = parts.device?.prove({ client, role, scopes, token, nonce, at });
  return {
    type: "req",
    id: CONNECT_ID,
    method: "connect",
    params: {
      minProtocol: STRICT_VERSION,
      maxProtocol: STRICT_VERSION,
      client,
      ...optional({ role, scopes, commands, device }),
      // A node sends only its own capabilities, because it gets no events of sessions.
      caps: role === "node" ? caps : [TEXT_DELTAS, ...(caps ?? [])],
      ...(token === undefined ? {} : { auth: { token } }),
    },
  };
}

/** Returns the nonce in the gateway's challenge. */
function nonceOf(payload: unknown): string {
  const { nonce } = (payload ?? {}) as { nonce?: unknown };
  return typeof nonce === "string" ? nonce : "";
}

interface Settle {
  resolve(socket: ClientSocket): void;
  reject(error: GatewayError): void;
}

/** Handles frames until the greeting. The socket that the greeting creates gets the later frames. */
class Greeting {
  readonly #parts: SocketParts;
  readonly #settle: Settle;
  readonly #line: DialedSocket;
  readonly #timer: Timer;
  readonly #offSignal: () => void;
  #socket: Connected | undefined;

  constructor(parts: SocketParts, signal: AbortSignal | undefined, settle: Settle) {
    const { dialer, url, world, connectTimeoutMs } = parts;
    this.#parts = parts;
    this.#settle = settle;
    this.#line = dialer.dial(url, {
      message: (text) => {
        const frame = readFrame(text);
        if (frame === undefined) return;
        if (this.#socket !== undefined) this.#socket.frame(frame, text.length);
        else if (frame.type === "event" && frame.event === "connect.challenge")
          this.#line.send(JSON.stringify(connectRequest(this.#parts, nonceOf(frame.payload))));
        else if (frame.type === "res" && frame.id === CONNECT_ID) this.#takeAnswer(frame);
      },
      end: (error) => (this.#socket === undefined ? this.#fail(error) : this.#socket.end(error)),
    });
    this.#timer = world.clock.after(connectTimeoutMs, () =>
      this.#fail(new GatewayError("UNREACHABLE", `${url} did not answer in time`)),
    );
    const abort = (): void => {
      if (signal !== undefined) this.#fail(aborted(signal, "connecting was aborted"));
    };
    signal?.addEventListener("abort", abort);
    this.#offSignal = () => signal?.removeEventListener("abort", abort);
  }

  #takeAnswer(answer: ResponseFrame): void {
    if (!answer.ok) {
      this.#fail(errorOf(answer.error));
      return;
    }
    this.#done();
    this.#socket = new Connected(this.#line, answer.payload as HelloOk, this.#parts.world);
    this.#settle.resolve(this.#socket);
  }

  #fail(error: GatewayError): void {
    this.#done();
    this.#settle.reject(error);
    this.#line.cut();
  }

  #done(): void {
    this.#timer.cancel();
    this.#offSignal();
  }
}

class Connected implements ClientSocket {
  readonly hello: HelloOk;
  readonly #line: DialedSocket;
  readonly #world: ClientWorld;
  readonly #silentMaxMs: number;
  readonly #wholeText: ReturnType<typeof createTextKeeper>;
  #onFrame: FrameListener | undefined;
  #onEnd: (error: GatewayError) => void = () => {};
  /** Frames that arrived before the first listener was added. That listener gets them. */
  #early: Parameters<FrameListener>[] = [];
  #heardAt: number;
  #ended: GatewayError | undefined;
  #watch: Timer;
  #cutOff: Timer | undefined;

  constructor(line: DialedSocket, hello: HelloOk, world: ClientWorld) {
    this.hello = hello;
    this.#line = line;
    this.#world = world;
    this.#silentMaxMs = hello.policy.tickIntervalMs * SILENT_TICKS_MAX;
    this.#wholeText = createTextKeeper(() => world.clock.now());
    this.#heardAt = world.clock.monotonic();
    this.#watch = this.#watchSilence();
  }

  send(frame: object): void {
    this.#line.send(JSON.stringify(frame));
  }

  listen(onFrame: FrameListener, onEnd: (error: GatewayError) => void): void {
    this.#onFrame = onFrame;
    this.#onEnd = onEnd;
    for (const [frame, chars] of this.#early.splice(0)) onFrame(frame, chars);
    if (this.#ended !== undefined) onEnd(this.#ended);
  }

  frame(given: ResponseFrame | EventFrame, chars: number): void {
    this.#heardAt = this.#world.clock.monotonic();
    const frame = given.type === "event" ? this.#wholeText(given) : given;
    if (frame === undefined) return;
    if (this.#onFrame === undefined) this.#early.push([frame, chars]);
    else this.#onFrame(frame, chars);
  }

  end(error: GatewayError): void {
    this.#cutOff?.cancel();
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#watch.cancel();
    this.#onEnd(error);
  }

  close(): void {
    const { clock } = this.#world;
    this.#watch.cancel();
    if (this.#ended !== undefined) return;
    this.#cutOff = clock.after(CLOSE_GRACE_MS, () => this.#line.cut());
    this.#line.close();
  }

  /** Returns the time until the gateway counts as silent. */
  #leftMs(): number {
    return this.#heardAt + this.#silentMaxMs - this.#world.clock.monotonic();
  }

  #watchSilence(): Timer {
    return this.#world.clock.after(this.#leftMs(), () => {
      if (this.#leftMs() > 0) this.#watch = this.#watchSilence();
      else {
        this.end(new GatewayError("CLOSED", "the gateway has stopped responding"));
        this.#line.cut();
      }
    });
  }
}

/** Opens a socket and connects. Rejects with a `GatewayError`. */
export function openSocket(parts: SocketParts, signal?: AbortSignal): Promise<ClientSocket> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(aborted(signal, "connecting was aborted"));
    new Greeting(parts, signal, { resolve, reject });
  });
}

/** Adds a delta to the text of a run. Returns the whole text, or undefined if an earlier part is missing. */
function grow(texts: Map<string, string>, runId: string, delta: TextDelta): string | undefined {
  const before = texts.get(runId) ?? "";
  const text = joinedDeltas({ offset: 0, text: before }, delta)?.text;
  if (text === undefined) texts.delete(runId);
  else texts.set(runId, isFlatDue(before.length, text.length) ? flat(text) : text);
  return text;
}

/**
 * Remembers the growing texts of one connection. The returned function replaces the new part in an event with
 * the whole text. It returns undefined if an earlier part is missing; the gateway then sends the whole text.
 */
function createTextKeeper(now: () => number): (frame: EventFrame) => EventFrame | undefined {
  const texts = new Map<string, string>();
  const thoughts = new Map<string, string>();
  const thinkingIn = (frame: EventFrame): EventFrame | undefined => {
    const event = frame.payload as AgentEvent;
    const { runId, stream, data } = event;
    if (stream === "lifecycle") thoughts.delete(runId);
    if (stream !== "thinking_delta") return frame;
    const text = grow(thoughts, runId, { offset: data.offset, text: data.delta });
    return text === undefined ? undefined : { ...frame, payload: { ...event, data: { ...data, text } } };
  };
  return (frame) => {
    if (frame.event === "agent") return thinkingIn(frame);
    if (frame.event !== "chat") return frame;
    const event = frame.payload as ChatEvent;
    const { runId, state, delta, offset = 0, message } = event;
    if (state !== "delta") {
      texts.delete(runId);
      return frame;
    }
    const text = grow(texts, runId, { offset, text: delta ?? message?.content[0]?.text ?? "" });
    if (text === undefined) return undefined;
    const whole: ChatMessage = { role: "assistant", content: [{ type: "text", text }], timestamp: now() };
    return { ...frame, payload: { ...event, message: whole } };
  };
}
