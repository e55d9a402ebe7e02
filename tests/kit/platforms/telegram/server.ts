// A fake Bot API server, written from Telegram's documentation: a real HTTP server with bots, chats and
// people. It keeps updates until they are confirmed. methods.ts contains its methods.

import type { IncomingMessage, ServerResponse } from "node:http";
import { cleanup } from "../../engine/engine.ts";
import { serveHttp } from "../../loopback.ts";
import { formParts } from "../form.ts";
import { callMethod } from "./methods.ts";
import {
  type Answer,
  type FakeBot,
  type FakeChat,
  failed,
  type Json,
  type Press,
  type Sent,
  type TelegramState,
} from "./state.ts";

export interface TelegramServer extends TelegramState {
  readonly url: string;
  /** Method and parameters of every call. */
  readonly calls: { readonly method: string; readonly params: Json }[];
  addBot(token: string, username: string): FakeBot;
  addChat(chat: Omit<FakeChat, "topics">): FakeChat;
  /** Adds an update with this field. Returns the update's id. */
  push(bot: FakeBot, update: Json): number;
  /** A person presses a button. `data`: what the person's client says that it stands for. */
  press(bot: FakeBot, press: { message: Sent; from: Json; data: string }): Press;
  revoke(bot: FakeBot): void;
  /** Replaces the next answer of a method. A promise holds the answer back. */
  answerNext(method: string, answer: Answer | Promise<Answer>): void;
  close(): Promise<void>;
}

const BODY_BYTES_MAX = 16 * 1024 * 1024;

/** Answers a waiting request with all pending updates. */
function wake(bot: FakeBot, answer: Answer): void {
  const { waiting } = bot;
  bot.waiting = undefined;
  waiting?.(answer);
}

function updatesFor(bot: FakeBot, limit: number): Answer {
  return { status: 200, body: { ok: true, result: bot.updates.slice(0, limit) } };
}

/** Answers getUpdates, immediately or with the next update. */
function getUpdates(bot: FakeBot, params: Json): Promise<Answer> | Answer {
  const { offset, timeout = 0, limit = 100 } = params;
  bot.offsets.push(offset);
  bot.allowed = params.allowed_updates ?? bot.allowed;
  if (bot.webhookUrl !== "") {
    const why =
      "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
    return failed(409, `Conflict: ${why}`);
  }
  const confirmed = bot.updates.findIndex(({ update_id }) => update_id >= (offset ?? 0));
  bot.updates.splice(0, confirmed === -1 ? bot.updates.length : confirmed);
  if (bot.updates.length > 0 || timeout === 0) return updatesFor(bot, limit);
  const only = "make sure that only one bot instance is running";
  wake(bot, failed(409, `Conflict: terminated by other getUpdates request; ${only}`));
  return new Promise((resolve) => {
    const timer = setTimeout(() => wake(bot, updatesFor(bot, limit)), timeout * 1_000);
    bot.waiting = (answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
  });
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error("too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns the parameters of a call. A file is `{ name, bytes }`. */
function paramsIn(request: IncomingMessage, body: Buffer): Json {
  const parts = formParts(request, body);
  if (parts === undefined) return body.length === 0 ? {} : (JSON.parse(body.toString("utf8")) as Json);
  const form: Json = {};
  for (const { field, bytes, fileName } of parts) {
    const given = Object.entries(form).find(([, value]) => value === `attach://${field}`)?.[0];
    if (fileName !== undefined) form[given ?? field] = { name: fileName, bytes };
    else if (field.endsWith("entities")) form[field] = JSON.parse(bytes.toString("utf8"));
    else form[field] = field === "message_thread_id" ? Number(bytes) : bytes.toString("utf8");
  }
  return form;
}

function respond(response: ServerResponse, { status, body, headers = {}, cut = false }: Answer): void {
  if (cut) {
    response.destroy();
    return;
  }
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const retryAfter = typeof body === "string" ? undefined : body.parameters?.retry_after;
  const limit = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
  const type = typeof body === "string" ? "text/html" : "application/json";
  response.writeHead(status, { "content-type": type, ...limit, ...headers }).end(text);
}

export async function startTelegram(): Promise<TelegramServer> {
  const state: TelegramState = {
    ...{ bots: [], chats: new Map(), files: new Map(), sent: [], presses: [], actions: [], upsets: [] },
    nextMessageId: 1,
  };
  const calls: TelegramServer["calls"] = [];
  const instead = new Map<string, (Answer | Promise<Answer>)[]>();

  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const path = decodeURIComponent(request.url ?? "");
    const [, token, rest = ""] = /^\/(?:file\/)?bot([^/]+)\/(.*)$/.exec(path) ?? [];
    const bot = state.bots.find((one) => one.token === token);
    if (token === undefined || !/^\d+:[\w-]{30,}$/.test(token)) return failed(404, "Not Found");
    if (bot === undefined || bot.isRevoked) return failed(401, "Unauthorized");
    if (path.startsWith("/file/")) {
      const file = [...state.files.values()].find((one) => one.path === rest);
      if (file === undefined) return failed(404, "Not Found");
      return { status: 200, body: Buffer.from(file.bytes).toString("latin1"), headers: { "x-file": "1" } };
    }
    const params = paramsIn(request, await bodyOf(request));
    calls.push({ method: rest, params });
    const planned = instead.get(rest)?.shift();
    if (planned !== undefined) return planned;
    return rest === "getUpdates" ? getUpdates(bot, params) : callMethod(state, bot, rest, params);
  };

  const http = await serveHttp((request, response) => {
    answer(request).then(
      (given) => {
        if (given.headers?.["x-file"] === undefined) return respond(response, given);
        response.writeHead(200, { "content-type": "application/octet-stream" });
        response.end(Buffer.from(given.body as string, "latin1"));
      },
      () => respond(response, { status: 500, body: "broken" }),
    );
  });
  const close = (): Promise<void> => {
    for (const bot of state.bots) wake(bot, failed(500, "Internal Server Error: restart"));
    return http.close();
  };
  cleanup(close);

  return Object.assign(state, {
    url: http.origin,
    calls,
    addBot(token: string, username: string) {
      const bot: FakeBot = {
        ...{ id: Number(token.split(":")[0]), token, username, updates: [], nextUpdateId: 870_000_001 },
        ...{ webhookUrl: "", commands: [], isRevoked: false, waiting: undefined, allowed: undefined },
        offsets: [],
      };
      state.bots.push(bot);
      return bot;
    },
    addChat(chat: Omit<FakeChat, "topics">) {
      const whole = { ...chat, topics: new Set<number>() };
      state.chats.set(chat.id, whole);
      return whole;
    },
    push(bot: FakeBot, update: Json) {
      const update_id = bot.nextUpdateId;
      bot.nextUpdateId += 1;
      bot.updates.push({ update_id, ...update });
      wake(bot, updatesFor(bot, 100));
      return update_id;
    },
    press(bot: FakeBot, { message, from, data }: { message: Sent; from: Json; data: string }) {
      const press: Press = { id: String(4_000_000_000_000_000_000n + BigInt(state.presses.length)) };
      state.presses.push(press);
      const { messageId: message_id, chatId, threadId, text, entities, buttons, editedAt } = message;
      const { type, title } = state.chats.get(chatId) ?? {};
      const chat = { id: chatId, type, ...(title === undefined ? {} : { title }) };
      const topic = threadId === undefined ? {} : { message_thread_id: threadId, is_topic_message: true };
      const edited = {
        ...(editedAt === undefined ? {} : { edit_date: editedAt }),
        ...(buttons.length === 0 ? {} : { reply_markup: { inline_keyboard: buttons } }),
      };
      const shown = { message_id, date: 1_790_000_000, chat, text, entities, ...topic, ...edited };
      this.push(bot, {
        callback_query: { id: press.id, from, chat_instance: "1", data, message: shown },
      });
      return press;
    },
    revoke(bot: FakeBot) {
      bot.isRevoked = true;
      wake(bot, failed(401, "Unauthorized"));
    },
    answerNext(method: string, given: Answer | Promise<Answer>) {
      instead.set(method, [...(instead.get(method) ?? []), given]);
    },
    close,
  });
}
