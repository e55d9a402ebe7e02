// A fake signal-cli daemon: JSON-RPC and server-sent events over HTTP. Events have ids, the daemon keeps the
// last ones, and a test can request faults.

import type { IncomingMessage, ServerResponse } from "node:http";
import { optional } from "../../../src/core/optional.ts";
import { cleanup } from "../engine/engine.ts";
import { serveHttp } from "../loopback.ts";

/** Number of events that signal-cli keeps. */
const EVENTS_KEPT = 1_000;
const BODY_BYTES_MAX = 16 * 1024 * 1024;
const MESSAGE_MAX_CHARS = 2_000;

export interface SignalServerOptions {
  readonly accounts: readonly { readonly number: string; readonly aci: string }[];
  /** False simulates an older version: its events have no ids, and are lost while nobody listens. */
  readonly keepsEvents?: boolean;
  /** True simulates a daemon for a single account. It returns no list of accounts. */
  readonly isSingle?: boolean;
}

export interface SentToSignal {
  readonly account: string;
  readonly to: string;
  readonly isGroup: boolean;
  readonly message: string;
  readonly textStyle: readonly string[];
  readonly file?: { readonly type: string; readonly name: string; readonly bytes: Buffer };
}

/** How the next `send` fails. */
export type SendTrouble =
  | {
      readonly kind: "error";
      readonly code: number;
      readonly message: string;
      readonly results?: readonly object[];
    }
  | { readonly kind: "results"; readonly results: readonly object[] }
  | { readonly kind: "status"; readonly status: number; readonly body?: string }
  /** Accepts the text, then breaks the connection before the answer. */
  | { readonly kind: "cut" };

interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface SignalServer {
  readonly url: string;
  readonly sent: SentToSignal[];
  readonly typed: Readonly<Record<string, unknown>>[];
  /** The event id from which each connection resumed. */
  readonly resumed: (string | undefined)[];
  readonly attachments: Map<string, Uint8Array>;
  /** Sends an event to all listeners, and stores it. */
  event(account: string, event: object): void;
  /** Sends the newest event again. */
  again(): void;
  /** Sends raw text to all listeners. */
  raw(text: string): void;
  next(trouble: SendTrouble): void;
  listeners(): number;
  hangUp(): void;
  remove(number: string): void;
  close(): Promise<void>;
}

interface State extends Required<SignalServerOptions> {
  readonly known: Set<string>;
  readonly sent: SentToSignal[];
  readonly typed: Readonly<Record<string, unknown>>[];
  readonly attachments: Map<string, Uint8Array>;
  readonly kept: { readonly id: number; readonly account: string; readonly data: string }[];
  readonly streams: Map<ServerResponse, string>;
  readonly resumed: (string | undefined)[];
  trouble: SendTrouble | undefined;
}

const PREFIX = "1767225600000-";

function write(stream: ServerResponse, { id, data }: State["kept"][number], keepsEvents: boolean): void {
  stream.write(`${keepsEvents ? `id:${PREFIX}${id}\n` : ""}event:receive\ndata:${data}\n\n`);
}

function openEvents(state: State, request: IncomingMessage, response: ServerResponse): void {
  const account = new URL(request.url ?? "", "http://here").searchParams.get("account") ?? "";
  if (!state.isSingle && !state.known.has(account)) {
    response.writeHead(400).end();
    return;
  }
  const last = request.headers["last-event-id"];
  state.resumed.push(typeof last === "string" ? last : undefined);
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(":\n");
  if (typeof last === "string" && state.keepsEvents) {
    const after = last.startsWith(PREFIX) ? Number(last.slice(PREFIX.length)) : 0;
    for (const event of state.kept) {
      if (event.id > after && event.account === account) write(response, event, true);
    }
  }
  state.streams.set(response, account);
  response.on("close", () => state.streams.delete(response));
}

class RpcError extends Error {
  readonly code: number;
  readonly results: readonly object[] | undefined;
  constructor(code: number, message: string, results?: readonly object[]) {
    super(message);
    this.code = code;
    this.results = results;
  }
}

function target(params: Call["params"]): { to: string; isGroup: boolean } {
  const { recipient, groupId } = params;
  if (typeof groupId === "string") {
    if (Buffer.from(groupId, "base64").length !== 32)
      throw new RpcError(-1, "Invalid group id: no base64 of 32 bytes");
    return { to: groupId, isGroup: true };
  }
  const [to] = Array.isArray(recipient) ? recipient : [];
  if (typeof to !== "string") throw new RpcError(-1, "No recipients given");
  return { to, isGroup: false };
}

function fileIn(attachments: unknown): SentToSignal["file"] {
  if (!Array.isArray(attachments)) return undefined;
  const [, type = "", name = "", data = ""] =
    /^data:(.+?\/.+?);filename=(.+?);base64,(.+)$/.exec(String(attachments[0])) ?? [];
  if (data === "") throw new RpcError(-1, "Failed to open attachment");
  return { type, name: decodeURIComponent(name), bytes: Buffer.from(data, "base64") };
}

function sendMessage(state: State, params: Call["params"]): object {
  const { account, message, textStyle = [] } = params;
  const { to, isGroup } = target(params);
  const file = fileIn(params.attachments);
  if (typeof message !== "string" || (message === "" && file === undefined))
    throw new RpcError(-1, "Sending empty message is not allowed");
  if (message.length > MESSAGE_MAX_CHARS)
    throw new RpcError(-1, "the fake takes no text that becomes an attachment");
  for (const style of textStyle as unknown[]) {
    const found = /^(\d+):(\d+):(BOLD|ITALIC|STRIKETHROUGH|MONOSPACE|SPOILER)$/.exec(String(style));
    const end = Number(found?.[1]) + Number(found?.[2]);
    if (found === null || !(end <= message.length))
      throw new RpcError(-1, `Invalid textStyle syntax (${style})`);
  }
  const one = {
    account: String(account),
    to,
    isGroup,
    message,
    textStyle: textStyle as string[],
    ...optional({ file }),
  };
  const { trouble } = state;
  state.trouble = undefined;
  if (trouble?.kind === "error") throw new RpcError(trouble.code, trouble.message, trouble.results);
  if (trouble?.kind === "results") return { timestamp: 1, results: trouble.results };
  state.sent.push(one);
  if (trouble?.kind === "cut") throw trouble;
  return { timestamp: 1_767_225_600_000, results: [{ recipientAddress: { number: to }, type: "SUCCESS" }] };
}

function answerCall(state: State, { method, params }: Call): object | readonly object[] {
  if (method === "listAccounts" && !state.isSingle) {
    return state.accounts.filter(({ number }) => state.known.has(number));
  }
  if (method === "version") return { version: "0.13.24" };
  const mine = state.isSingle || state.known.has(String(params.account));
  if (!["send", "sendTyping", "getAttachment"].includes(method))
    throw new RpcError(-32601, "Method not implemented");
  if (!mine) throw new RpcError(-32602, "Specified account does not exist");
  if (method === "send") return sendMessage(state, params);
  if (method === "sendTyping") {
    state.typed.push(params);
    return { ...target(params), results: [] };
  }
  const bytes = state.attachments.get(String(params.id));
  if (bytes === undefined) throw new RpcError(-2, `Could not find attachment with ID: ${String(params.id)}`);
  return { data: Buffer.from(bytes).toString("base64") };
}

function answerRpc(state: State, body: string, response: ServerResponse): void {
  const call = JSON.parse(body) as Call;
  const { trouble } = state;
  if (call.method === "send" && trouble?.kind === "status") {
    state.trouble = undefined;
    response.writeHead(trouble.status).end(trouble.body ?? "");
    return;
  }
  const say = (said: object): void => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", ...said, id: call.id }));
  };
  try {
    say({ result: answerCall(state, call) });
  } catch (error) {
    if (!(error instanceof RpcError)) {
      response.socket?.destroy();
      return;
    }
    const { code, message, results } = error;
    say({
      error: { code, message, data: results === undefined ? null : { response: { timestamp: 1, results } } },
    });
  }
}

function readCall(state: State, request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) request.destroy();
    else chunks.push(chunk);
  });
  request.on("end", () => answerRpc(state, Buffer.concat(chunks).toString("utf8"), response));
}

function handle(state: State, request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? "", "http://here");
  const isJson = request.headers["content-type"]?.startsWith("application/json") === true;
  const asked = `${request.method} ${pathname}`;
  if (asked === "GET /api/v1/events") openEvents(state, request, response);
  else if (asked === "POST /api/v1/rpc" && isJson) readCall(state, request, response);
  else
    response.writeHead(asked === "GET /api/v1/check" ? 200 : asked === "POST /api/v1/rpc" ? 415 : 404).end();
}

export async function startSignalServer(options: SignalServerOptions): Promise<SignalServer> {
  const state: State = {
    ...{ keepsEvents: true, isSingle: false, ...options },
    known: new Set(options.accounts.map(({ number }) => number)),
    ...{ sent: [], typed: [], attachments: new Map(), kept: [], streams: new Map(), resumed: [] },
    trouble: undefined,
  };
  const { origin, close } = await serveHttp((request, response) => handle(state, request, response));
  const hangUp = (): void => {
    for (const stream of state.streams.keys()) stream.socket?.destroy();
  };
  cleanup(close);
  let count = 0;
  const bring = (account: string, data: string): void => {
    count += 1;
    const event = { id: count, account, data };
    state.kept.push(event);
    if (state.kept.length > EVENTS_KEPT) state.kept.shift();
    for (const [stream, wanted] of state.streams) {
      if (state.isSingle || wanted === account) write(stream, event, state.keepsEvents);
    }
  };
  return {
    url: origin,
    ...{ sent: state.sent, typed: state.typed, resumed: state.resumed, attachments: state.attachments },
    event: (account, event) => bring(account, JSON.stringify({ account, ...event })),
    again() {
      const last = state.kept.at(-1);
      if (last !== undefined) bring(last.account, last.data);
    },
    raw(text) {
      for (const stream of state.streams.keys()) stream.write(text);
    },
    next(trouble) {
      state.trouble = trouble;
    },
    listeners: () => state.streams.size,
    hangUp,
    remove(number) {
      state.known.delete(number);
      hangUp();
    },
    close,
  };
}
