// A fake Discord on a local port: its REST interface, with the real paths, bodies, codes and headers, and its
// gateway. It has one server (guild) with channels, a thread and a forum, three people and one bot.

import type { IncomingMessage, ServerResponse } from "node:http";
import { cleanup } from "../engine/engine.ts";
import { type HttpHere, serveHttp } from "../loopback.ts";
import { type FakeGateway, startGateway } from "./discord-gateway.ts";
import { formParts } from "./form.ts";

export const BOT = { id: "100000000000000001", username: "parley", bot: true };
const APPLICATION = "100000000000000002";
export const GUILD = "200000000000000001";
export const BOT_ROLE = "200000000000000002";
export const OTHER_ROLE = "200000000000000003";
export const ADA = { id: "300000000000000001", username: "ada", global_name: "Ada" };
export const BOB = { id: "300000000000000002", username: "bob", global_name: "Bob" };
export const ROOM = "400000000000000001";
export const THREAD = "400000000000000002";
export const FORUM = "400000000000000003";
export const NEWS = "400000000000000004";
export const HIDDEN = "400000000000000005";
export const DIRECT = "500000000000000001";
export const TOKEN = "MTAwMDAwMDAwMDAwMDAwMDAx.Gsecret.not-a-real-token-of-anybody-000000";

/** The intents GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES and MESSAGE_CONTENT. */
const ALL_INTENTS = 1 | (1 << 9) | (1 << 12) | (1 << 15);
const CONTENT_CHARS_MAX = 2_000;
const BODY_BYTES_MAX = 16 * 1024 * 1024;

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape, as on the wire.
export type Json = any;

/** Faults for the next matching calls. */
type Fault =
  | {
      readonly kind: "status";
      readonly status: number;
      readonly body?: Json;
      readonly headers?: Record<string, string>;
    }
  /** Executes the call, then breaks the connection. */
  | { readonly kind: "cut" }
  /** Never answers the call. */
  | { readonly kind: "hang" }
  | { readonly kind: "text"; readonly text: string };

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly body: Json;
}

export interface DiscordServer {
  /** The address to use as the setting `restUrl`. */
  readonly restUrl: string;
  readonly gateway: FakeGateway;
  readonly asked: Asked[];
  /** Messages that the bot sent, in order. */
  readonly sent: { readonly channelId: string; readonly body: Json; readonly id: string }[];
  readonly channels: Map<string, Json>;
  readonly roles: Json[];
  /** The command menu that the bot registered. */
  commands: Json[];
  /** The required token, intents and heartbeat interval. A test may change them. */
  readonly rules: { token: string; intents: number; heartbeatMs: number; startsLeft: number };
  /** Presses of buttons: the response to each, with its type and its words. Absent before the response. */
  readonly presses: { readonly id: string; response?: Json }[];
  /** A person presses a button of a sent message, `afterMs` after the message or its last change. */
  press(
    messageId: string,
    press: { user: Json; customId: string; afterMs?: number },
  ): DiscordServer["presses"][number];
  /** Adds a person's message to the channel's history, and sends it to the bot unless `quiet` is true. */
  say(message: Json, quiet?: boolean): Json;
  /** Edits a message, and sends the update event. */
  change(message: Json, fields: Json): void;
  /** Stores a file on the fake server, and returns its address. */
  keep(name: string, bytes: Uint8Array): string;
  /** Sets the fault for the next calls whose method and path match. */
  fault(calls: RegExp, fault: Fault, times?: number): void;
  nextId(): string;
  stop(): Promise<void>;
}

const CHANNELS: Json[] = [
  { id: ROOM, type: 0, name: "general", guild_id: GUILD },
  { id: THREAD, type: 11, name: "plans", guild_id: GUILD, parent_id: ROOM },
  { id: FORUM, type: 15, name: "questions", guild_id: GUILD },
  { id: NEWS, type: 5, name: "news", guild_id: GUILD },
  { id: DIRECT, type: 1, recipients: [ADA] },
];
const ROLES: Json[] = [
  { id: GUILD, name: "@everyone" },
  { id: BOT_ROLE, name: "parley", tags: { bot_id: BOT.id } },
  { id: OTHER_ROLE, name: "editors" },
];

interface State {
  readonly server: DiscordServer;
  readonly history: Map<string, Json[]>;
  readonly files: Map<string, Buffer>;
  readonly faults: { calls: RegExp; fault: Fault; times: number }[];
}

const unknownChannel = { status: 404, body: { message: "Unknown Channel", code: 10003 } };
const ok = (body?: Json) => ({ status: body === undefined ? 204 : 200, body });

interface Answer {
  readonly status: number;
  readonly body?: Json;
}

function createMessage({ server, history }: State, channelId: string, body: Json): Answer {
  const channel = server.channels.get(channelId);
  if (channel === undefined) return unknownChannel;
  if (channelId === HIDDEN) return { status: 403, body: { message: "Missing Access", code: 50001 } };
  if (channel.type === 15)
    return { status: 400, body: { message: "Cannot send messages in a non-text channel", code: 50008 } };
  if (typeof body?.content !== "string" || (body.content.trim() === "" && body.files === undefined)) {
    return { status: 400, body: { message: "Cannot send an empty message", code: 50006 } };
  }
  if (body.content.length > CONTENT_CHARS_MAX) {
    const errors = {
      content: { _errors: [{ code: "BASE_TYPE_MAX_LENGTH", message: "Must be 2000 or fewer in length." }] },
    };
    return { status: 400, body: { message: "Invalid Form Body", code: 50035, errors } };
  }
  if (String(body.nonce ?? "").length > 25 || !areButtons(body.components))
    return { status: 400, body: { message: "Invalid Form Body", code: 50035 } };
  const same = server.sent.find((one) => one.channelId === channelId && one.body.nonce === body.nonce);
  const known = body.enforce_nonce === true && body.nonce !== undefined ? same : undefined;
  const id = known?.id ?? server.nextId();
  const message = { id, channel_id: channelId, type: 0, author: BOT, content: body.content, mentions: [] };
  if (known === undefined) {
    server.sent.push({ channelId, body, id });
    if (channel.thread_metadata?.archived === true) channel.thread_metadata.archived = false;
    history.set(channelId, [...(history.get(channelId) ?? []), message]);
    const guild = channel.guild_id === undefined ? {} : { guild_id: channel.guild_id };
    server.gateway.dispatch("MESSAGE_CREATE", { ...message, ...guild });
  }
  return ok(message);
}

/** Returns whether these are rows of one to five buttons, each with a label and an own id. */
function areButtons(rows: Json[] = []): boolean {
  const buttons: Json[] = rows.flatMap(({ components }) => components);
  const ids = new Set(buttons.map(({ custom_id }) => custom_id));
  const isButton = ({ type, style, label = "", custom_id = "" }: Json): boolean =>
    type === 2 && style >= 1 && style <= 4 && /^.{1,80}$/.test(label) && /^.{1,100}$/.test(custom_id);
  const isRow = ({ type, components }: Json): boolean =>
    type === 1 && components.length >= 1 && components.length <= 5;
  return rows.length <= 5 && rows.every(isRow) && buttons.every(isButton) && ids.size === buttons.length;
}

/** Changes a message of the bot. */
function editMessage({ server }: State, path: string, body: Json): Answer {
  const id = /\d{17,20}$/.exec(path)?.[0];
  const message = server.sent.find((one) => one.id === id);
  if (message === undefined) return { status: 404, body: { message: "Unknown Message", code: 10008 } };
  if (!areButtons(body.components) || body.content.length > CONTENT_CHARS_MAX)
    return { status: 400, body: { message: "Invalid Form Body", code: 50035 } };
  Object.assign(message.body, body);
  return ok({ id, channel_id: message.channelId, author: BOT, content: body.content });
}

/** Takes the response to an interaction. Each has one. */
function respond({ server }: State, path: string, body: Json): Answer {
  const press = server.presses.find(({ id }) => path.includes(`/${id}/`));
  if (press?.response !== undefined)
    return { status: 400, body: { message: "Interaction has already been acknowledged.", code: 40060 } };
  if (press !== undefined) press.response = body;
  return ok();
}

function createThread({ server }: State, parentId: string, body: Json): Answer {
  const parent = server.channels.get(parentId);
  if (parent === undefined) return unknownChannel;
  const wanted =
    parent.type === 15 ? body?.message !== undefined : body?.type === (parent.type === 5 ? 10 : 11);
  if (parent.type === 1 || parent.type === 11 || !wanted || String(body?.name ?? "").length > 100) {
    return { status: 400, body: { message: "Cannot execute action on this channel type", code: 50024 } };
  }
  const id = server.nextId();
  const type = parent.type === 5 ? 10 : 11;
  const thread = { id, type, name: body.name, guild_id: parent.guild_id, parent_id: parentId };
  server.channels.set(id, thread);
  server.gateway.dispatch("THREAD_CREATE", thread);
  return { status: 201, body: thread };
}

function messagesAfter({ server, history }: State, channelId: string, query: URLSearchParams): Answer {
  if (!server.channels.has(channelId)) return unknownChannel;
  const [after, limit] = [query.get("after"), Number(query.get("limit") ?? 50)];
  const all = history.get(channelId) ?? [];
  const found = all.filter(({ id }) => BigInt(id) > BigInt(after ?? "0"));
  // Without "after", Discord returns the newest messages. The newest is always first, without its guild's id.
  const page = (after === null ? found.slice(-limit) : found.slice(0, limit)).reverse();
  return ok(page.map(({ guild_id: _guild, member: _member, ...message }) => message));
}

function directChat({ server }: State, body: Json): Answer {
  const person = [ADA, BOB].find(({ id }) => id === body?.recipient_id);
  if (person === undefined) return { status: 400, body: { message: "Invalid Recipient(s)", code: 50033 } };
  const there = [...server.channels.values()].find(
    (one) => one.type === 1 && one.recipients[0].id === person.id,
  );
  const chat = there ?? { id: server.nextId(), type: 1, recipients: [person] };
  server.channels.set(chat.id, chat);
  return ok(chat);
}

function answer(state: State, { method, path, query, body }: Asked): Answer {
  const { server } = state;
  const { rules } = server;
  const id = /\d{17,20}/.exec(path)?.[0] ?? "";
  const shape = `${method} ${path.replace(/\d{17,20}/g, ":id")}`;
  switch (shape) {
    case "GET /gateway/bot": {
      const limit = { total: 1000, remaining: rules.startsLeft, reset_after: 3_600_000, max_concurrency: 1 };
      return ok({ url: server.gateway.url, shards: 1, session_start_limit: limit });
    }
    case "GET /users/@me":
      return ok(BOT);
    case "GET /applications/@me":
      return ok({ id: APPLICATION, name: "Parley" });
    case "GET /applications/:id/commands":
      return ok(server.commands);
    case "PUT /applications/:id/commands":
      server.commands = body;
      return ok(body);
    case "POST /users/@me/channels":
      return directChat(state, body);
    case "GET /channels/:id": {
      const channel = server.channels.get(id);
      return channel === undefined ? unknownChannel : ok(channel);
    }
    case "GET /channels/:id/messages":
      return messagesAfter(state, id, query);
    case "POST /channels/:id/messages":
      return createMessage(state, id, body);
    case "PATCH /channels/:id/messages/:id":
      return editMessage(state, path, body);
    case "POST /channels/:id/typing":
      return server.channels.has(id) ? ok() : unknownChannel;
    case "POST /channels/:id/threads":
      return createThread(state, id, body);
    case "GET /guilds/:id/roles":
      return ok(server.roles);
    default:
      if (/^POST \/interactions\/:id\/[^/]+\/callback$/.test(shape)) return respond(state, path, body);
      return { status: 404, body: { message: "404: Not Found", code: 0 } };
  }
}

/** Returns the JSON of a request. The files of a form become `files: [{ name, bytes }]`. */
function bodyIn(request: IncomingMessage, bytes: Buffer): Json {
  const parts = formParts(request, bytes);
  if (parts === undefined) return bytes.length === 0 ? undefined : JSON.parse(bytes.toString("utf8"));
  const json = parts.find(({ field }) => field === "payload_json")?.bytes.toString("utf8") ?? "{}";
  const files = parts.flatMap(({ fileName: name, bytes }) => (name === undefined ? [] : [{ name, bytes }]));
  return { ...JSON.parse(json), files };
}

function handle(state: State, request: IncomingMessage, response: ServerResponse, bytes: Buffer): void {
  const url = new URL(request.url ?? "/", "http://here");
  const method = request.method ?? "GET";
  const { authorization } = request.headers;
  const file = state.files.get(url.pathname);
  const path = decodeURIComponent(url.pathname.replace(/^\/api\/v10/, ""));
  const asked: Asked = { method, path, query: url.searchParams, authorization, body: bodyIn(request, bytes) };
  state.server.asked.push(asked);
  if (file !== undefined) return void response.writeHead(200).end(file);
  const isOpen = path.startsWith("/interactions/");
  const mine = isOpen || authorization === `Bot ${state.server.rules.token}`;
  const at = state.faults.findIndex(({ calls }) => calls.test(`${method} ${path}`));
  const found = state.faults[at];
  if (found !== undefined) {
    found.times -= 1;
    if (found.times === 0) state.faults.splice(at, 1);
  }
  const fault = found?.fault;
  if (fault?.kind === "hang") return;
  if (fault?.kind === "cut") {
    answer(state, asked);
    return void request.socket.destroy();
  }
  if (fault?.kind === "text") {
    return void response.writeHead(200, { "content-type": "application/json" }).end(fault.text);
  }
  const { status, body } =
    fault ?? (mine ? answer(state, asked) : { status: 401, body: { message: "401: Unauthorized", code: 0 } });
  response.writeHead(status, { "content-type": "application/json", ...fault?.headers });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

/** Returns increasing ids in Discord's format, starting at this time. */
function idsFrom(ms: number): () => string {
  let at = BigInt(ms - 1_420_070_400_000) << 22n;
  return () => {
    at += 1n;
    return String(at);
  };
}

/** Starts the REST server, which limits the size of bodies. */
function startHttp(stateOf: () => State): Promise<HttpHere> {
  return serveHttp((request, response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) request.destroy();
      else chunks.push(chunk);
    });
    request.on("end", () => handle(stateOf(), request, response, Buffer.concat(chunks)));
    request.on("error", () => {});
  });
}

/** Starts the fake Discord gateway. */
function openGateway(
  rules: DiscordServer["rules"],
  channels: DiscordServer["channels"],
): Promise<FakeGateway> {
  const threads = () => [...channels.values()].filter(({ type }) => type === 11);
  return startGateway({
    isToken: (token) => token === rules.token,
    intentsAllowed: () => rules.intents,
    heartbeatMs: () => rules.heartbeatMs,
    ready: (id, url) => ({ v: 10, user: BOT, session_id: id, resume_gateway_url: url, guilds: [] }),
    guilds: () => [
      { id: GUILD, name: "Guild", channels: CHANNELS.slice(0, 1), threads: threads(), roles: ROLES },
    ],
  });
}

/** Returns the default fields of a message. */
const bareMessage = (id: string) => ({
  ...{ id, type: 0, author: ADA, content: "", mentions: [], mention_roles: [], attachments: [], embeds: [] },
  ...{ edited_timestamp: null, timestamp: new Date().toISOString(), flags: 0 },
});

export async function startDiscord(): Promise<DiscordServer> {
  const rules = { token: TOKEN, intents: ALL_INTENTS, heartbeatMs: 41_250, startsLeft: 1000 };
  const channels = new Map(CHANNELS.map((one) => [one.id as string, structuredClone(one)]));
  const gateway = await openGateway(rules, channels);
  const history = new Map<string, Json[]>();
  const http = await startHttp(() => state);
  const nextId = idsFrom(Date.now());
  const files = new Map<string, Buffer>();
  let stopped: Promise<void> | undefined;
  const server: DiscordServer = {
    ...{
      restUrl: `${http.origin}/api`,
      gateway,
      asked: [],
      sent: [],
      channels,
      roles: structuredClone(ROLES),
    },
    ...{ commands: [], presses: [], rules, nextId },
    press(messageId, { user, customId: custom_id, afterMs = 5_000 }) {
      const sent = server.sent.find((one) => one.id === messageId);
      const channel_id = sent?.channelId ?? "";
      const { guild_id } = channels.get(channel_id) ?? {};
      const at = Number(BigInt(messageId) >> 22n) + 1_420_070_400_000;
      const id = String(
        ((BigInt(messageId) >> 22n) + BigInt(afterMs)) * (1n << 22n) + BigInt(server.presses.length),
      );
      const press = { id };
      server.presses.push(press);
      const message = { id: messageId, channel_id, author: BOT, content: sent?.body.content, type: 0 };
      const edited = { timestamp: new Date(at).toISOString(), edited_timestamp: null };
      gateway.dispatch("INTERACTION_CREATE", {
        ...{ id, application_id: APPLICATION, type: 3, token: `press-${id}`, channel_id, version: 1 },
        ...{ context: guild_id === undefined ? 1 : 0, data: { component_type: 2, custom_id } },
        ...(guild_id === undefined ? { user } : { guild_id, member: { user, nick: null } }),
        message: { ...message, ...edited },
      });
      return press;
    },
    say(given, quiet = false) {
      const { guild_id } = channels.get(given.channel_id) ?? {};
      const inGuild = guild_id === undefined ? {} : { guild_id, member: { nick: null } };
      const message = { ...bareMessage(nextId()), ...inGuild, ...given };
      history.set(given.channel_id, [...(history.get(given.channel_id) ?? []), message]);
      if (!quiet) gateway.dispatch("MESSAGE_CREATE", message);
      return message;
    },
    change(message, fields) {
      Object.assign(message, fields);
      gateway.dispatch("MESSAGE_UPDATE", { ...message });
    },
    keep(name, bytes) {
      const path = `/attachments/${nextId()}/${encodeURIComponent(name)}`;
      files.set(path, Buffer.from(bytes));
      return `${http.origin}${path}`;
    },
    fault: (calls, fault, times = 1) => void state.faults.push({ calls, fault, times }),
    stop: () => {
      stopped ??= (async () => {
        await gateway.stop();
        await http.close();
      })();
      return stopped;
    },
  };
  const state: State = { server, history, files, faults: [] };
  cleanup(server.stop);
  return server;
}
