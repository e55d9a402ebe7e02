// A fake Discord gateway with identify, heartbeat, resume with missed events, reconnect (op 7), invalid
// session (op 9), and close codes.

import { WebSocket, WebSocketServer } from "ws";

/** The op codes of Discord's frames. */
const OP = { dispatch: 0, beat: 1, identify: 2, resume: 6, reconnect: 7, invalid: 9, hello: 10, beaten: 11 };

interface Session {
  readonly id: string;
  readonly events: { readonly s: number; readonly t: string; readonly d: unknown }[];
  sequence: number;
}

export interface GatewayOptions {
  /** Returns true if the token is valid. */
  readonly isToken: (token: unknown) => boolean;
  readonly intentsAllowed: () => number;
  readonly ready: (sessionId: string, resumeUrl: string) => object;
  /** Returns the first events of a new session. */
  readonly guilds: () => readonly object[];
  readonly heartbeatMs: () => number;
}

export interface FakeGateway {
  readonly url: string;
  readonly identified: Record<string, unknown>[];
  readonly resumed: { readonly session: string; readonly from: number; readonly replayed: number }[];
  /** The sequence number of each heartbeat. */
  readonly beats: (number | null)[];
  /** Sends an event to every session. A disconnected session gets the event when it resumes. */
  dispatch(type: string, data: unknown): void;
  /** Sends a text frame unchanged. */
  raw(text: string): void;
  /** Asks clients to reconnect (op 7). */
  reconnect(): void;
  /** Invalidates the session (op 9). */
  invalidate(): void;
  close(code: number): void;
  /** Cuts the sockets without a close frame. */
  cut(): void;
  /** From now on, refuses every resume. */
  forget(): void;
  /** Accepts connections without sending anything. */
  fallSilent(silent: boolean): void;
  /** From now on, does not acknowledge heartbeats. */
  deafen(): void;
  connections(): number;
  stop(): Promise<void>;
}

interface Live {
  readonly options: GatewayOptions;
  readonly url: string;
  readonly sessions: Map<string, Session>;
  readonly sockets: Map<WebSocket, Session | undefined>;
  readonly gateway: Pick<FakeGateway, "identified" | "resumed" | "beats">;
  silent: boolean;
  deaf: boolean;
}

const send = (socket: WebSocket, frame: object): void => socket.send(JSON.stringify(frame));

function keepEvent(session: Session, t: string, d: unknown) {
  session.sequence += 1;
  const event = { s: session.sequence, t, d };
  session.events.push(event);
  return event;
}

function tell(socket: WebSocket, session: Session, type: string, data: unknown): void {
  const event = keepEvent(session, type, data);
  if (socket.readyState === WebSocket.OPEN) send(socket, { op: OP.dispatch, ...event });
}

/**
 * Returns true if the token and the intents of a bot are accepted. If they are not, closes the socket with
 * Discord's close code.
 */
function admits({ options }: Live, socket: WebSocket, token: unknown, intents = 0): boolean {
  const isTooMuch = (intents & ~options.intentsAllowed()) !== 0;
  const code = !options.isToken(token) ? 4004 : isTooMuch ? 4014 : 0;
  if (code !== 0) socket.close(code);
  return code === 0;
}

function identify(live: Live, socket: WebSocket, data: Record<string, unknown>): void {
  const { options, gateway, sessions } = live;
  if (!admits(live, socket, data.token, Number(data.intents))) return;
  gateway.identified.push(data);
  const session: Session = { id: `session-${gateway.identified.length}`, events: [], sequence: 0 };
  sessions.set(session.id, session);
  live.sockets.set(socket, session);
  tell(socket, session, "READY", options.ready(session.id, live.url));
  for (const guild of options.guilds()) tell(socket, session, "GUILD_CREATE", guild);
}

function resume(live: Live, socket: WebSocket, data: Record<string, unknown>): void {
  if (!admits(live, socket, data.token)) return;
  const session = live.sessions.get(String(data.session_id));
  if (session === undefined) {
    send(socket, { op: OP.invalid, d: false });
    return;
  }
  live.sockets.set(socket, session);
  const from = Number(data.seq);
  const missed = session.events.filter(({ s }) => s > from);
  live.gateway.resumed.push({ session: session.id, from, replayed: missed.length });
  for (const event of missed) send(socket, { op: OP.dispatch, ...event });
  tell(socket, session, "RESUMED", {});
}

function connected(live: Live, socket: WebSocket): void {
  live.sockets.set(socket, undefined);
  socket.on("close", () => live.sockets.delete(socket));
  socket.on("error", () => {});
  socket.on("message", (bytes) => {
    const { op, d } = JSON.parse(String(bytes)) as { op: number; d: Record<string, unknown> };
    if (op === OP.beat) {
      live.gateway.beats.push(d as unknown as number | null);
      if (!live.deaf) send(socket, { op: OP.beaten });
    } else if (op === OP.identify) identify(live, socket, d);
    else if (op === OP.resume) resume(live, socket, d);
  });
  if (!live.silent) send(socket, { op: OP.hello, d: { heartbeat_interval: live.options.heartbeatMs() } });
}

/** Stores the event for every session, because a disconnected session may resume. */
function dispatchTo({ sockets, sessions }: Live, type: string, data: unknown): void {
  const reached = new Set<Session>();
  for (const [socket, session] of sockets) {
    if (session === undefined) continue;
    reached.add(session);
    tell(socket, session, type, data);
  }
  for (const session of sessions.values()) if (!reached.has(session)) keepEvent(session, type, data);
}

export async function startGateway(options: GatewayOptions): Promise<FakeGateway> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await new Promise<void>((resolve) => server.once("listening", resolve));
  const url = `ws://127.0.0.1:${(server.address() as { port: number }).port}`;
  const gateway: Live["gateway"] = { identified: [], resumed: [], beats: [] };
  const [sessions, sockets]: [Live["sessions"], Live["sockets"]] = [new Map(), new Map()];
  const live: Live = { options, url, sessions, sockets, gateway, silent: false, deaf: false };
  server.on("connection", (socket) => connected(live, socket));
  const everySocket = (act: (socket: WebSocket) => void): void => {
    for (const socket of [...sockets.keys()]) act(socket);
  };
  return {
    ...{ url, ...gateway },
    dispatch: (type, data) => dispatchTo(live, type, data),
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
      live.silent = value;
    },
    deafen: () => {
      live.deaf = true;
    },
    connections: () => sockets.size,
    stop: async () => {
      everySocket((socket) => socket.terminate());
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
