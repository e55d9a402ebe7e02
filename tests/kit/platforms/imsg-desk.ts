// Replaces the Messages app that `imsg rpc` uses. The channel starts a program (imsg.ts), which connects to
// this fake. It has chats, a watch that resumes after a given row, sent texts, and faults on request.

import { createServer, type Socket } from "node:net";
import { optional } from "../../../src/core/optional.ts";
import { cleanup } from "../engine/engine.ts";
import { listenHere } from "../loopback.ts";
import { IMSG } from "./imsg.ts";

export interface ImsgDeskOptions {
  /** True simulates an older version, without `status`, cursors and quoted messages. */
  readonly isOld?: boolean;
}

export interface SentByImsg {
  readonly to?: string;
  readonly chat_guid?: string;
  readonly text: string;
}

/** The fault of the next `send`. */
export type ImsgTrouble =
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data?: unknown }
  /** Sends the text, then ends the program before it confirms the request. */
  | { readonly kind: "cut" };

export type Row = Readonly<Record<string, unknown>> & { readonly id: number };

export interface ImsgDesk {
  readonly command: readonly string[];
  readonly rows: Row[];
  readonly sent: SentByImsg[];
  /** The row from which each watch resumed. */
  readonly resumed: (number | undefined)[];
  /** Adds a message to the database, and notifies all watches. */
  add(fields: object): Row;
  /** Reports the newest message again. */
  again(): void;
  /** Writes raw text to every running program. */
  raw(text: string): void;
  next(trouble: ImsgTrouble): void;
  /** Returns the number of running programs and of their watches. */
  programs(): number;
  watches(): number;
  /** From now on, the database is unreadable. */
  lock(): void;
  /** Ends the running programs. */
  hangUp(): void;
  close(): Promise<void>;
}

interface Client {
  readonly socket: Socket;
  readonly watches: Map<number, boolean>;
}

interface State {
  readonly isOld: boolean;
  readonly rows: Row[];
  readonly sent: SentByImsg[];
  readonly resumed: (number | undefined)[];
  readonly clients: Set<Client>;
  isLocked: boolean;
  trouble: ImsgTrouble | undefined;
  subscriptions: number;
}

interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

const KEYS: Readonly<Record<string, readonly string[]>> = {
  status: [],
  "chats.list": ["limit", "unread_only"],
  "messages.history": ["chat_id", "limit", "participants", "start", "end", "attachments"],
  "watch.subscribe": [
    "chat_id",
    "since_rowid",
    "participants",
    "start",
    "end",
    "attachments",
    "include_reactions",
  ],
  "watch.unsubscribe": ["subscription"],
  send: ["to", "chat_id", "chat_identifier", "chat_guid", "text", "file", "service", "region"],
};

function tell(state: State, client: Client, subscription: number, row: Row): void {
  const attachments = client.watches.get(subscription) === true ? (row.attachments ?? []) : [];
  const message = { ...row, attachments, ...(state.isOld ? {} : { cursor: row.id }) };
  const params = { subscription, message };
  client.socket.write(`${JSON.stringify({ jsonrpc: "2.0", method: "message", params })}\n`);
}

function send(state: State, client: Client, params: Readonly<Record<string, unknown>>): object {
  const { to, chat_guid: guid, text } = params;
  if ((to === undefined) === (guid === undefined))
    throw new RpcError(-32602, "Invalid params", "use to or chat_*");
  if (typeof text !== "string" || text === "")
    throw new RpcError(-32602, "Invalid params", "text or file is required");
  const { trouble } = state;
  state.trouble = undefined;
  if (trouble?.kind === "error") throw new RpcError(trouble.code, trouble.message, trouble.data);
  state.sent.push({ text, ...(typeof to === "string" ? { to } : { chat_guid: String(guid) }) });
  if (trouble?.kind === "cut") client.socket.destroy();
  return { ok: true };
}

function answer(
  state: State,
  client: Client,
  { method, params = {} }: Call,
): { result: object; afterwards?: () => void } {
  const known = KEYS[method];
  if (known === undefined || (state.isOld && method === "status"))
    throw new RpcError(-32601, "Method not found", method);
  const strange = Object.keys(params).find((key) => !known.includes(key));
  if (strange !== undefined) throw new RpcError(-32602, "Invalid params", `unknown key ${strange}`);
  if (method === "status") return { result: { version: "0.15.10", protocol_version: 1 } };
  if (method === "send") return { result: send(state, client, params) };
  if (method === "watch.unsubscribe") {
    client.watches.delete(Number(params.subscription));
    return { result: { ok: true } };
  }
  if (state.isLocked) throw new RpcError(-32002, "Database unavailable", "authorization denied (code: 23)");
  if (method === "chats.list") return { result: { chats: [] } };
  if (method === "messages.history") {
    const messages = state.rows.filter((row) => row.chat_id === params.chat_id).reverse();
    return { result: { messages: messages.slice(0, Number(params.limit)) } };
  }
  const since = params.since_rowid as number | undefined;
  state.resumed.push(since);
  state.subscriptions += 1;
  const subscription = state.subscriptions;
  const begin = (): void => {
    client.watches.set(subscription, params.attachments === true);
    for (const row of state.rows)
      if (since !== undefined && row.id > since) tell(state, client, subscription, row);
  };
  // Older versions start the watch before they confirm the request.
  if (!state.isOld) return { result: { subscription }, afterwards: begin };
  begin();
  return { result: { subscription } };
}

function work(state: State, client: Client, line: string): void {
  const call = JSON.parse(line) as Call;
  const say = (said: object): void => {
    client.socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: call.id, ...said })}\n`);
  };
  try {
    const { result, afterwards } = answer(state, client, call);
    if (!client.socket.destroyed) say({ result });
    afterwards?.();
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const { code, message, data } = error;
    say({ error: { code, message, ...optional({ data }) } });
  }
}

function serve(state: State, socket: Socket): void {
  const client: Client = { socket, watches: new Map() };
  state.clients.add(client);
  let rest = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) work(state, client, line);
  });
  socket.on("error", () => undefined);
  socket.on("close", () => state.clients.delete(client));
}

export async function startImsgDesk({ isOld = false }: ImsgDeskOptions = {}): Promise<ImsgDesk> {
  const state: State = {
    ...{ isOld, isLocked: false, trouble: undefined, subscriptions: 0 },
    ...{ rows: [], sent: [], resumed: [], clients: new Set() },
  };
  const server = createServer((socket) => serve(state, socket));
  const port = await listenHere(server);
  const hangUp = (): void => {
    for (const { socket } of state.clients) socket.destroy();
  };
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    hangUp();
    await closed;
  };
  cleanup(close);
  const show = (row: Row): void => {
    for (const client of state.clients) {
      for (const subscription of client.watches.keys()) tell(state, client, subscription, row);
    }
  };
  return {
    command: [process.execPath, IMSG, String(port)],
    ...{ rows: state.rows, sent: state.sent, resumed: state.resumed },
    add(fields) {
      const row = { id: (state.rows.at(-1)?.id ?? 100) + 1, ...fields };
      state.rows.push(row);
      show(row);
      return row;
    },
    again() {
      const last = state.rows.at(-1);
      if (last !== undefined) show(last);
    },
    raw(text) {
      for (const { socket } of state.clients) socket.write(text);
    },
    next(trouble) {
      state.trouble = trouble;
    },
    programs: () => state.clients.size,
    watches: () => [...state.clients].reduce((sum, { watches }) => sum + watches.size, 0),
    lock() {
      state.isLocked = true;
      for (const { socket, watches } of state.clients) {
        for (const subscription of watches.keys()) {
          const params = { subscription, error: { message: "authorization denied (code: 23)" } };
          socket.write(`${JSON.stringify({ jsonrpc: "2.0", method: "error", params })}\n`);
        }
      }
    },
    hangUp,
    close,
  };
}
