// MCP clients from both official libraries with a real gateway, and requests that no library would send.

import {
  Client as NewClient,
  StreamableHTTPClientTransport as NewTransport,
} from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import type { FakeWorld } from "../../kit/world.ts";
import { type House, TOKEN } from "../kit.ts";

/** Each entry: a client library, and the protocol revision that it negotiates. */
export const SPEAKERS = ["version 1", "version 2, older revision", "version 2, newest revision"] as const;
export type Speaker = (typeof SPEAKERS)[number];
export const REVISION_OF: Record<Speaker, string> = {
  "version 1": "2025-11-25",
  "version 2, older revision": "2025-11-25",
  "version 2, newest revision": "2026-07-28",
};

/**
 * Interval at which the gateway reads the inbox of a waiting client again, in case no event reports a new
 * message.
 */
export const INBOX_LOOK_MS = 10_000;

/** Maximum number of clock steps before a wait fails. */
const STEPS_MAX = 2_000;

/** Advances the clock in steps until the promise resolves. */
export async function timeUntil<T>(world: FakeWorld, wanted: Promise<T>): Promise<T> {
  let come = false;
  wanted
    .finally(() => {
      come = true;
    })
    .catch(() => {});
  for (let step = 0; !come && step < STEPS_MAX; step++) await world.advance(250);
  return wanted;
}

export type Answer = Record<string, unknown>;

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { progress: number; message?: string | undefined }) => void;
}

/** The operations of a client, the same for both libraries. */
export interface Peer {
  readonly revision: string | undefined;
  tools(): Promise<string[]>;
  /** Calls a tool and returns its result object. */
  call(name: string, args?: Answer, options?: CallOptions): Promise<Answer>;
  read(uri: string): Promise<Answer>;
  /** Calls `heard` for each notification about the inbox. Resolves when the subscription is active. */
  subscribe(heard: () => void): Promise<void>;
  close(): Promise<void>;
}

export interface PeerOptions {
  readonly name?: string;
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly query?: string;
}

const INBOX = "parley://inbox";

interface CallResult {
  readonly content: { text: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

/** Returns the object that a tool's result has as text. Checks that the same object is beside the text. */
export function objectOf(result: unknown): Answer {
  const { content, structuredContent, isError } = result as CallResult;
  const told = JSON.parse(content[0]?.text ?? "") as Answer;
  expect(structuredContent).toEqual(isError === true ? undefined : told);
  return told;
}

type OldWire = Parameters<OldClient["connect"]>[0];
type NewWire = Parameters<NewClient["connect"]>[0];

/** Connects a client of the older library. `opened` resolves when the notification stream is open. */
export async function oldPeer(name: string, wire: OldWire, opened = Promise.resolve()): Promise<Peer> {
  const client = new OldClient({ name, version: "1.0.0" });
  cleanup(() => client.close());
  await client.connect(wire);
  // From now on the library refuses results that do not fit the description of their tool.
  await client.listTools();
  return {
    revision: (wire as { protocolVersion?: string }).protocolVersion ?? "2025-11-25",
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (tool, args = {}, options = {}) =>
      objectOf(await client.callTool({ name: tool, arguments: args }, undefined, options)),
    read: async (uri) => {
      const [found] = (await client.readResource({ uri })).contents;
      return JSON.parse((found as { text: string }).text) as Answer;
    },
    async subscribe(heard) {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
        if (params.uri === INBOX) heard();
      });
      await client.subscribeResource({ uri: INBOX });
      await opened;
    },
    close: () => client.close(),
  };
}

export async function newPeer(
  name: string,
  wire: NewWire,
  newest: boolean,
  opened = Promise.resolve(),
): Promise<Peer> {
  const versionNegotiation = { mode: newest ? "auto" : "legacy" } as const;
  const client = new NewClient({ name, version: "1.0.0" }, { versionNegotiation });
  cleanup(() => client.close());
  await client.connect(wire);
  // From now on the library refuses results that do not fit the description of their tool.
  await client.listTools();
  return {
    revision: client.getNegotiatedProtocolVersion(),
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (tool, args = {}, options = {}) =>
      objectOf(await client.callTool({ name: tool, arguments: args }, options)),
    read: async (uri) => {
      const [found] = (await client.readResource({ uri })).contents;
      return JSON.parse((found as { text: string }).text) as Answer;
    },
    async subscribe(heard) {
      client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
        if (params.uri === INBOX) heard();
      });
      if (newest) {
        await client.listen({ resourceSubscriptions: [INBOX] });
        return;
      }
      await client.subscribeResource({ uri: INBOX });
      await opened;
    },
    close: () => client.close(),
  };
}

/** Returns a fetch that reports when the gateway has accepted the client's notification stream. */
function watchedFetch(): { fetch: typeof fetch; opened: Promise<void> } {
  const { promise: opened, resolve } = Promise.withResolvers<void>();
  return {
    opened,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (init?.method === "GET" && response.ok) resolve();
      return response;
    },
  };
}

/** Connects a client over HTTP. */
export async function openPeer(
  house: Pick<House, "http">,
  speaker: Speaker,
  options: PeerOptions = {},
): Promise<Peer> {
  const { name = "Test Client", token = TOKEN, headers = {}, query = "" } = options;
  const url = new URL(`${house.http}/mcp${query}`);
  const { fetch: watched, opened } = watchedFetch();
  const wire = { requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } }, fetch: watched };
  if (speaker === "version 1") return oldPeer(name, new OldTransport(url, wire) as OldWire, opened);
  return newPeer(name, new NewTransport(url, wire), speaker === "version 2, newest revision", opened);
}

/** Connects the official client of the older library itself. */
export async function oldClient(
  house: Pick<House, "http">,
  handle: string,
  token = TOKEN,
): Promise<OldClient> {
  const url = new URL(`${house.http}/mcp?handle=${handle}`);
  const wire = new OldTransport(url, { requestInit: { headers: { authorization: `Bearer ${token}` } } });
  const client = new OldClient({ name: handle, version: "1.0.0" });
  cleanup(() => client.close());
  await client.connect(wire as OldWire);
  return client;
}

const POST = { accept: "application/json, text/event-stream", "content-type": "application/json" };

/** Sends a request to `/mcp` unchanged. */
export function raw(house: Pick<House, "http">, init: RequestInit, query = ""): Promise<Response> {
  const headers = { authorization: `Bearer ${TOKEN}`, ...POST, ...(init.headers as Record<string, string>) };
  return fetch(`${house.http}/mcp${query}`, { method: "POST", ...init, headers });
}

/** Sends a request of the older protocol revisions. Returns the message in the answer. */
export async function ask(
  house: Pick<House, "http">,
  method: string,
  params: Answer = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return messageOf(await raw(house, { body, headers }));
}

/** Reads the message of a response: a stream with one event, or JSON. */
export async function messageOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const lines = text.split("\n").filter((line) => line.startsWith("data:"));
  const json = isStream ? (lines.at(-1)?.slice(5) ?? "") : text;
  return JSON.parse(json) as Answer;
}

interface NewRequest {
  method: string;
  params?: Answer;
  name?: string;
  extensions?: Answer;
  /** Other capabilities. */
  capabilities?: Answer;
  signal?: AbortSignal;
}

/** Sends a request of the newest protocol revision. Returns the message in the answer. */
export async function askNew(
  house: Pick<House, "http">,
  request: NewRequest,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return messageOf(await rawNew(house, request, headers));
}

/** Sends a request of the newest protocol revision. */
export function rawNew(
  house: Pick<House, "http">,
  request: NewRequest,
  headers: Record<string, string> = {},
): Promise<Response> {
  const { method, params = {}, name, extensions, capabilities, signal } = request;
  const version = "2026-07-28";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientInfo": { name: "by hand", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": { ...capabilities, ...optional({ extensions }) },
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: { ...params, _meta } });
  const more = {
    "mcp-protocol-version": version,
    "mcp-method": method,
    ...optional({ "mcp-name": name }),
  };
  const init = signal === undefined ? { body } : { body, signal };
  return raw(house, { ...init, headers: { ...more, ...headers } });
}

/** Returns a model that answers when the test releases it. */
export function heldModel(): {
  play: () => Promise<string>;
  started: Promise<void>;
  answer(text: string): void;
} {
  const begun = Promise.withResolvers<void>();
  const said = Promise.withResolvers<string>();
  return {
    play: () => {
      begun.resolve();
      return said.promise;
    },
    started: begun.promise,
    answer: said.resolve,
  };
}

/** Resolves when an entry is appended to this session. */
export function written(
  house: House,
  sessionKey: string,
  role: "user" | "assistant" = "user",
): Promise<void> {
  return new Promise((resolve) => {
    const stop = house.engine.bus.subscribe((event) => {
      if (event.kind !== "message" || event.sessionKey !== sessionKey || event.message.role !== role) return;
      stop();
      resolve();
    });
  });
}

/** Sends from one session to another with the tool of its agent. */
export async function sendAs(
  house: House,
  from: string,
  to: string,
  message: string,
  timeoutSeconds = 0,
): Promise<Answer> {
  const args = { sessionKey: to, message, timeoutSeconds };
  const body = JSON.stringify({ tool: "sessions_send", args, sessionKey: from });
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const response = await fetch(`${house.http}/tools/invoke`, { method: "POST", headers, body });
  return ((await response.json()) as { result: Answer }).result;
}
