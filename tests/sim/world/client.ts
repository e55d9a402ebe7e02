// A client that is connected by a simulated socket. It greets, sends requests, listens, reads slowly, loses
// its connection and reconnects.

import { EventEmitter } from "node:events";
import type { WebSocket } from "ws";
import type { ResponseFrame } from "../../../src/contract/frames.ts";
import { type Code, fail, ok } from "../../../src/core/shapes/errors.ts";
import { checkMasked, namedIn } from "../checks/results.ts";
import type { GatewayProcess } from "../process.ts";
import { type Asked, checkAnswer, covers, noteAsked, type Request } from "../requests.ts";
import type { Story } from "../story.ts";

/** Number of bytes that exceeds what the gateway keeps for a slow reader. */
const BEHIND_BYTES = 300_000;

/** The parts of a WebSocket that the gateway uses. */
class Socket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  readonly #hear: (text: string) => void;
  #unsent: (() => void)[] = [];
  /** The fragments of an incomplete message. */
  #begun = "";

  constructor(hear: (text: string) => void) {
    super();
    this.#hear = hear;
  }

  send(data: string | Buffer, options?: { fin?: boolean } | (() => void)): void {
    if (this.readyState !== 1) return;
    this.#begun += data.toString();
    if (typeof options === "object" && options.fin === false) return;
    const whole = this.#begun;
    this.#begun = "";
    this.#hear(whole);
    const sent = typeof options === "function" ? options : undefined;
    if (sent === undefined) return;
    if (this.bufferedAmount > 0) this.#unsent.push(sent);
    else sent();
  }

  /** Reports that all sent data has reached the client. */
  caughtUp(): void {
    this.bufferedAmount = 0;
    for (const sent of this.#unsent.splice(0)) sent();
  }

  pause(): void {}

  close(): void {
    this.terminate();
  }

  terminate(): void {
    if (this.readyState !== 1) return;
    this.readyState = 3;
    this.emit("close");
  }
}

interface EventFrame {
  readonly event: string;
  readonly seq?: number;
  readonly payload: Readonly<Record<string, unknown>>;
}

interface Pending {
  readonly asked: Asked;
  /** The position of the request among all requests of this client. */
  readonly at: number;
  answers: number;
}

export class Client {
  readonly name: string;
  readonly token: string;
  readonly #story: Story;
  #process: GatewayProcess | undefined;
  #socket: Socket | undefined;
  #ready = false;
  #requests = 0;
  #seq = 0;
  readonly #pending = new Map<string, Pending>();
  /** Number of connections so far. Requests on the same connection are accepted in order. */
  #connections = 0;
  /** For each run, the sequence number of its last event, and whether its end has arrived. */
  readonly #runs = new Map<string, { seq: number; final: boolean }>();

  constructor(story: Story, name: string, token: string) {
    this.#story = story;
    this.name = name;
    this.token = token;
  }

  /** True if the client can send a request now. */
  get ready(): boolean {
    return this.#ready && this.#process?.state === "up" && this.#socket?.readyState === 1;
  }

  connect(process: GatewayProcess): void {
    this.drop();
    const socket: Socket = new Socket((text) => {
      // The client receives no data from a dead process.
      if (process.alive() && this.#socket === socket) this.#hear(text);
    });
    this.#process = process;
    this.#connections += 1;
    this.#socket = socket;
    this.#seq = 0;
    this.#runs.clear();
    void process.died.then(() => this.#socket === socket && this.#lose());
    socket.once("close", () => this.#socket === socket && this.#lose());
    process.serve(socket as unknown as WebSocket);
    const client = { id: this.name, version: "1", platform: "story", mode: "test" };
    this.#say({
      method: "connect",
      params: { minProtocol: 3, maxProtocol: 3, client, auth: { token: this.token } },
    });
  }

  /** Cuts the connection. */
  drop(): void {
    const socket = this.#socket;
    this.#lose();
    socket?.terminate();
  }

  #lose(): void {
    this.#socket = undefined;
    this.#ready = false;
    for (const { asked } of this.#pending.values()) if (asked.keyed !== undefined) asked.keyed.lost = true;
    this.#pending.clear();
  }

  /** Stops reading for a while. */
  dawdle(ms: number): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    socket.bufferedAmount = BEHIND_BYTES;
    this.#story.time.after(ms, () => socket.caughtUp());
  }

  ask(request: Request): void {
    const asked = noteAsked(this.#story, this.token, request);
    const id = this.#say(request);
    this.#pending.set(id, { asked, answers: 0, at: this.#requests });
    this.#story.trace.add(`${this.name} asks ${id} ${request.method} ${JSON.stringify(request.params)}`);
  }

  #say(request: Request): string {
    this.#requests += 1;
    const id = `${this.name}-${this.#requests}`;
    this.#socket?.emit("message", Buffer.from(JSON.stringify({ type: "req", id, ...request })), false);
    return id;
  }

  #hear(text: string): void {
    const frame = JSON.parse(text) as ResponseFrame | ({ type: "event" } & EventFrame);
    if (frame.type === "res") this.#answered(frame);
    else if (frame.event !== "connect.challenge") this.#event(frame, text);
  }

  #answered(frame: ResponseFrame): void {
    const pending = this.#pending.get(frame.id);
    if (pending === undefined) {
      this.#ready = frame.ok;
      return;
    }
    pending.answers += 1;
    const { request } = pending.asked;
    if (!frame.ok || request.method !== "agent" || pending.answers > 1) this.#pending.delete(frame.id);
    this.#story.trace.add(`${this.name} is answered ${frame.id} ${frame.ok ? "" : frame.error?.message}`);
    const { error } = frame;
    const code = (error?.details?.code ?? "internal") as Code;
    if (code === "internal" && !frame.ok)
      this.#story.wrong("door", `${request.method} fails: ${error?.message}`);
    const { code: _, hint: __, ...details } = error?.details ?? {};
    const result = frame.ok ? ok(frame.payload) : fail(code, error?.message ?? "", { details });
    if (frame.ok && pending.answers === 1) this.#noteOrder(pending);
    void checkAnswer(this.#story, pending.asked, result, pending.answers > 1).catch(() => {});
  }

  /**
   * Records a message that was accepted for the first time, with its position on this connection. If its key
   * was used again before the answer, another connection may have been served first.
   */
  #noteOrder({ asked, at }: Pending): void {
    const { method, params } = asked.request;
    const { keyed } = asked;
    if (!/^(chat\.send|agent)$/.test(method) || keyed?.sinceMs !== asked.atMs || keyed.repeated) return;
    const line = `${this.name} ${this.#connections}`;
    const said = this.#story.said.get(line) ?? [];
    this.#story.said.set(line, [...said, { at, runId: String(params.idempotencyKey) }]);
  }

  #event(frame: EventFrame, text: string): void {
    const story = this.#story;
    const { event, payload, seq } = frame;
    this.#seq += 1;
    if (seq !== this.#seq) story.wrong("door", `${this.name} hears event ${seq} after ${this.#seq - 1}`);
    checkMasked(story, text, `an event ${event}`);
    const about = String(payload.sessionKey ?? payload.key ?? "");
    const strange = [...namedIn(story, payload, ""), about].filter(
      (key) => key !== "" && !covers(story, this.token, key),
    );
    // A tool event may name other sessions, because the call belongs to a session that the token covers.
    const [named] = payload.stream === "tool" ? strange.filter((key) => key === about) : strange;
    if (named !== undefined)
      story.wrong("I9", `${this.name} (${this.token}) hears of ${named}: ${text.slice(0, 500)}`);
    this.#ofRun(event, payload);
  }

  /** Checks that the events of a run arrive in order, and that its end arrives once. */
  #ofRun(event: string, payload: EventFrame["payload"]): void {
    const { runId, seq, state, stopReason } = payload;
    if (typeof runId !== "string" || typeof seq !== "number") return;
    const known = this.#runs.get(runId) ?? { seq: 0, final: false };
    if (seq <= known.seq) this.#story.wrong("door", `event ${seq} of run ${runId} comes after ${known.seq}`);
    const isLast =
      event === "chat" && state !== "delta" && stopReason !== "delivered" && stopReason !== "injected";
    if (isLast && known.final) this.#story.wrong("I4", `${this.name} gets the end of run ${runId} twice`);
    if (event === "chat" && state === "delta" && known.final)
      this.#story.wrong("door", `${this.name} gets an event of run ${runId} after its end`);
    this.#runs.set(runId, { seq, final: known.final || isLast });
  }
}
