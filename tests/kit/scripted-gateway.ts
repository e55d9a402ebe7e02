// A gateway that a test scripts, for answers that a real gateway gives rarely, late or never.

import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type { RequestFrame } from "../../src/contract/frames.ts";
import { cleanup } from "./engine/engine.ts";

export interface Request extends Omit<RequestFrame, "params"> {
  readonly params: Record<string, unknown>;
  answer(payload: unknown): void;
  refuse(error: Record<string, unknown>): void;
}

export interface ScriptedGateway {
  readonly url: string;
  /** Waits for the next request after `connect`. */
  request(): Promise<Request>;
  /** Sends an event to every connected client. */
  event(event: string, payload: unknown): void;
  /** Closes all connections; clients may reconnect. */
  hangUp(): void;
}

const HELLO = {
  type: "hello-ok",
  protocol: 4,
  server: { version: "0", host: "scripted", connId: "c" },
  features: { methods: [], events: [] },
  snapshot: {
    presence: [],
    health: {},
    stateVersion: { presence: 0, health: 0 },
    uptimeMs: 0,
    sessionDefaults: {
      defaultAgentId: "main",
      mainKey: "main",
      mainSessionKey: "agent:main:main",
      scope: "per-sender",
    },
  },
  policy: { maxPayload: 1, maxBufferedBytes: 1, tickIntervalMs: 1_000_000 },
  auth: { role: "operator", scopes: [] },
};

/** Starts the gateway. `withHello`: an event that each client receives in the same packet as the greeting. */
export async function scriptedGateway(withHello?: string): Promise<ScriptedGateway> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  cleanup(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  const unread: Request[] = [];
  const readers: ((request: Request) => void)[] = [];
  const heard = (socket: WebSocket, { id, method, params }: RequestFrame): void => {
    const say = (frame: object): void => socket.send(JSON.stringify({ type: "res", id, ...frame }));
    if (method === "connect") {
      const line = Reflect.get(socket, "_socket") as Socket;
      line.cork();
      say({ ok: true, payload: HELLO });
      if (withHello !== undefined)
        socket.send(JSON.stringify({ type: "event", event: withHello, payload: {} }));
      line.uncork();
      return;
    }
    const request: Request = {
      type: "req",
      id,
      method,
      params: (params ?? {}) as Record<string, unknown>,
      answer: (payload) => say({ ok: true, payload }),
      refuse: (error) => say({ ok: false, error }),
    };
    const reader = readers.shift();
    if (reader === undefined) unread.push(request);
    else reader(request);
  };
  server.on("connection", (socket) => {
    socket.on("message", (data) => heard(socket, JSON.parse(data.toString())));
    socket.send(
      JSON.stringify({ type: "event", event: "connect.challenge", payload: { nonce: "n", ts: 0 } }),
    );
  });
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    request: () =>
      new Promise((resolve) => {
        const first = unread.shift();
        if (first === undefined) readers.push(resolve);
        else resolve(first);
      }),
    event(event, payload) {
      for (const socket of server.clients) socket.send(JSON.stringify({ type: "event", event, payload }));
    },
    hangUp() {
      for (const socket of server.clients) socket.terminate();
    },
  };
}
