// Owns the gateway of the Discord that tests speak to: identify, heartbeat, resume with what was missed, op 7, op 9,
// and the numbers with which a socket is closed.

import { WebSocket, WebSocketServer } from "ws";

/** Frames of the wire, as Discord numbers them. */
const OP = { dispatch: 0, beat: 1, identify: 2, resume: 6, reconnect: 7, invalid: 9, hello: 10, beaten: 11 };

interface Session {
  readonly id: string;
  readonly events: { readonly s: number; readonly t: string; readonly d: unknown }[];
  sequence: number;
}

export interface GatewayOptions {
  /** Undefined: this token is not ours. */
  readonly isToken: (token: unknown) => boolean;
  readonly intentsAllowed: () => number;
  readonly ready: (sessionId: string, resumeUrl: string) => object;
  /** What a new session is told of first. */
  readonly guilds: () => readonly object[];
  readonly heartbeatMs: () => number;
}

export interface FakeGateway {
  readonly url: string;
  readonly identified: Record<string, unknown>[];
  readonly resumed: { readonly session: string; readonly from: number; readonly replayed: number }[];
  /** The number that came with each beat. */
  readonly beats: (number | null)[];
  /** Tells every session, also those that may be taken up later. */
  dispatch(type: string, data: unknown): void;
  /** Sends this as it is, in a text frame. */
  raw(text: string): void;
  /** Asks for a new connection. */
  reconnect(): void;
  /** Ends the session itself. */
  invalidate(): void;
  close(code: number): void;
  /** Cuts the sockets without a word. */
  cut(): void;
  /** From now on no session can be taken up. */
  forget(): void;
  /** Takes connections, and says nothing. */
  fallSilent(silent: boolean): void;
  /** Beats are no longer confirmed. */
  deafen(): void;
  connections(): number;
  stop(): Promise<void>;
}

export async function startGateway(options: GatewayOptions): Promise<FakeGateway> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await new Promise<void>((resolve) => server.once("listening", resolve));
  const url = `ws://127.0.0.1:${(server.address() as { port: number }).port}`;
  const sessions = new Map<string, Session>();
  const live = new Map<WebSocket, Session | undefined>();
  const identified: Record<string, unknown>[] = [];
  const resumed: FakeGateway["resumed"] = [];
  const beats: (number | null)[] = [];
  let silent = false;
  let deaf = false;
  let made = 0;

  const send = (socket: WebSocket, frame: object) => socket.send(JSON.stringify(frame));
  const tell = (socket: WebSocket, session: Session, t: string, d: unknown): void => {
    session.sequence += 1;
    const event = { s: session.sequence, t, d };
    session.events.push(event);
    if (socket.readyState === WebSocket.OPEN) send(socket, { op: OP.dispatch, ...event });
  };

  function identify(socket: WebSocket, data: Record<string, unknown>): void {
    if (!options.isToken(data.token)) return socket.close(4004, "Authentication failed.");
    if ((Number(data.intents) & ~options.intentsAllowed()) !== 0)
      return socket.close(4014, "Disallowed intent(s).");
    identified.push(data);
    made += 1;
    const session: Session = { id: `session-${made}`, events: [], sequence: 0 };
    sessions.set(session.id, session);
    live.set(socket, session);
    tell(socket, session, "READY", options.ready(session.id, url));
    for (const guild of options.guilds()) tell(socket, session, "GUILD_CREATE", guild);
  }

  function resume(socket: WebSocket, data: Record<string, unknown>): void {
    if (!options.isToken(data.token)) return socket.close(4004, "Authentication failed.");
    const session = sessions.get(String(data.session_id));
    if (session === undefined) return send(socket, { op: OP.invalid, d: false });
    live.set(socket, session);
    const from = Number(data.seq);
    const missed = session.events.filter(({ s }) => s > from);
    resumed.push({ session: session.id, from, replayed: missed.length });
    for (const event of missed) send(socket, { op: OP.dispatch, ...event });
    tell(socket, session, "RESUMED", {});
  }

  server.on("connection", (socket) => {
    live.set(socket, undefined);
    socket.on("close", () => live.delete(socket));
    socket.on("error", () => {});
    socket.on("message", (bytes) => {
      const { op, d } = JSON.parse(String(bytes)) as { op: number; d: Record<string, unknown> };
      if (op === OP.beat) {
        beats.push(d as unknown as number | null);
        if (!deaf) send(socket, { op: OP.beaten });
      } else if (op === OP.identify) identify(socket, d);
      else if (op === OP.resume) resume(socket, d);
    });
    if (!silent) send(socket, { op: OP.hello, d: { heartbeat_interval: options.heartbeatMs() } });
  });

  const everySocket = (act: (socket: WebSocket) => void): void => {
    for (const socket of [...live.keys()]) act(socket);
  };
  return {
    ...{ url, identified, resumed, beats },
    dispatch(type, data) {
      const reached = new Set<Session>();
      for (const [socket, session] of live) {
        if (session === undefined) continue;
        reached.add(session);
        tell(socket, session, type, data);
      }
      for (const session of sessions.values()) {
        if (reached.has(session)) continue;
        session.sequence += 1;
        session.events.push({ s: session.sequence, t: type, d: data });
      }
    },
    raw: (text) => everySocket((socket) => socket.send(text)),
    reconnect: () => everySocket((socket) => send(socket, { op: OP.reconnect, d: null })),
    invalidate: () => {
      sessions.clear();
      everySocket((socket) => send(socket, { op: OP.invalid, d: false }));
    },
    close: (code) => everySocket((socket) => socket.close(code)),
    cut: () => everySocket((socket) => socket.terminate()),
    forget: () => sessions.clear(),
    fallSilent: (value) => {
      silent = value;
    },
    deafen: () => {
      deaf = true;
    },
    connections: () => live.size,
    stop: async () => {
      everySocket((socket) => socket.terminate());
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
