// One WebSocket client of a load test. It connects, counts its events, and can stop reading. It checks that
// frame numbers rise by one, that the numbers of a run's events rise by one (from 1, unless the run began
// earlier), and that each run's end arrives once.

import { WebSocket } from "ws";
import { PATIENCE_MS } from "../until.ts";

export interface ReaderTotals {
  events: number;
  /** Number of frames and run events whose sequence number was not the expected one. */
  gaps: number;
  /** Number of run ends that arrived twice. */
  twice: number;
  connects: number;
  /** Number of connections closed by the gateway, by close code. */
  readonly closes: Map<number, number>;
}

export interface ReaderOptions {
  readonly url: () => string;
  readonly token: string;
  /** Number of sessions that the token covers. Each session has at most one run at a time. */
  readonly sessions: number;
  readonly totals: ReaderTotals;
  /** Called once for the end of each run. */
  readonly onEnd?: (runId: string) => void;
  readonly onEvent?: (event: string, payload: Readonly<Record<string, unknown>>) => void;
}

interface Frame {
  readonly type: string;
  readonly id?: string;
  readonly ok?: boolean;
  readonly event?: string;
  readonly seq?: number;
  readonly payload?: Record<string, unknown>;
  readonly error?: { readonly code: string; readonly message: string };
}

type Pending = { resolve(payload: Record<string, unknown>): void; reject(error: Error): void };

export class LoadReader {
  readonly #options: ReaderOptions;
  #socket: WebSocket | undefined;
  #expected = 1;
  /** The last sequence number of each unfinished run, by the run's id. */
  readonly #runs = new Map<string, number>();
  readonly #pending = new Map<string, Pending>();
  #requests = 0;
  /** Number of runs that had already started when this connection began. */
  #underWay = 0;
  /** Ids of runs whose end arrived, on any connection. */
  readonly ends = new Set<string>();
  connId = "";

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Connects. Resolves after the gateway's `hello` frame. */
  async join(): Promise<void> {
    const { url, token, totals } = this.#options;
    const socket = new WebSocket(url(), { perMessageDeflate: false });
    this.#socket = socket;
    this.#expected = 1;
    this.#runs.clear();
    this.#underWay = 0;
    totals.connects += 1;
    const hello = Promise.withResolvers<Record<string, unknown>>();
    const late = setTimeout(() => hello.reject(new Error("no hello in time")), PATIENCE_MS);
    this.#pending.set("hello", hello);
    socket.on("message", (data) => this.#hear(JSON.parse(data.toString()) as Frame, token));
    socket.on("error", (error) => hello.reject(error));
    socket.on("close", (code) => {
      const error = new Error(`closed with ${code}`);
      for (const pending of this.#pending.values()) pending.reject(error);
      this.#pending.clear();
      if (this.#socket === socket) totals.closes.set(code, (totals.closes.get(code) ?? 0) + 1);
    });
    const said = await hello.promise.finally(() => clearTimeout(late));
    this.connId = String((said.server as { connId: string }).connId);
  }

  #hear(frame: Frame, token: string): void {
    if (frame.event === "connect.challenge") {
      const client = { id: "load", version: "1", platform: process.platform, mode: "test" };
      const params = { minProtocol: 3, maxProtocol: 3, client, auth: { token } };
      this.#send("hello", "connect", params);
    } else if (frame.type === "res") {
      const pending = this.#pending.get(frame.id ?? "");
      this.#pending.delete(frame.id ?? "");
      if (frame.ok === true) pending?.resolve(frame.payload ?? {});
      else pending?.reject(new Error(`${frame.error?.code}: ${frame.error?.message}`));
    } else this.#count(frame);
  }

  #count({ event = "", seq, payload = {} }: Frame): void {
    const { totals, sessions, onEnd, onEvent } = this.#options;
    onEvent?.(event, payload);
    totals.events += 1;
    if (seq !== this.#expected) totals.gaps += 1;
    this.#expected = (seq ?? this.#expected) + 1;
    const { runId, seq: number, state, stopReason } = payload as Record<string, string> & { seq: number };
    if ((event !== "agent" && event !== "chat") || runId === undefined) return;
    const before = this.#runs.get(runId);
    if (before === undefined && number !== 1) this.#underWay += 1;
    const isFirst = before === undefined && (number === 1 || this.#underWay <= sessions);
    if (!isFirst && number !== (before ?? 0) + 1) totals.gaps += 1;
    this.#runs.set(runId, number);
    if (event !== "chat" || state === "delta" || stopReason === "delivered") return;
    this.#runs.delete(runId);
    if (this.ends.has(runId)) totals.twice += 1;
    this.ends.add(runId);
    onEnd?.(runId);
  }

  #send(id: string, method: string, params: object): void {
    this.#socket?.send(JSON.stringify({ type: "req", id, method, params }));
  }

  request(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = `${++this.#requests}`;
    const pending = Promise.withResolvers<Record<string, unknown>>();
    if (this.#socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error("not connected"));
    this.#pending.set(id, pending);
    this.#send(id, method, params);
    return pending.promise;
  }

  /** Stops reading the socket, so that data piles up at the gateway. */
  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  /** Resolves with the close code when the gateway has closed the connection. */
  closed(): Promise<number> {
    const socket = this.#socket;
    return new Promise((resolve) => {
      if (socket === undefined || socket.readyState === WebSocket.CLOSED) resolve(0);
      else socket.once("close", resolve);
    });
  }

  leave(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.terminate();
  }
}
