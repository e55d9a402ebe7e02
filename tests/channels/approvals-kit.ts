// Chat platforms on which an agent asks its owner: a whole gateway, the real channel, and a fake platform with
// the real wire format. Ada is an owner. Bob may write on each platform, but is not an owner.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type App, openApp } from "../../src/app.ts";
import type { ChannelAccount } from "../../src/core/shapes/settings/channels.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { cleanup, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import {
  ADA as ADA_OF_DISCORD,
  BOB,
  DIRECT,
  type Json,
  startDiscord,
} from "../kit/platforms/discord-server.ts";
import { startImsgDesk } from "../kit/platforms/imsg-desk.ts";
import { OPEN_ACCOUNT } from "../kit/platforms/open-account.ts";
import { ADA as ADA_OF_SIGNAL, dataOf, from, OWN, signalAccount } from "../kit/platforms/signal-people.ts";
import { startSignalServer } from "../kit/platforms/signal-server.ts";
import { startTelegram } from "../kit/platforms/telegram/server.ts";
import { seenText, startWhatsApp, webHook } from "../kit/platforms/whatsapp-server.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";
import { discordAccount } from "./discord/ground.ts";
import * as telegram from "./telegram/ground.ts";
import { said, whatsAppAccount } from "./whatsapp/kit.ts";

export const MAIN = "agent:main:main";
const FILE = "approved.txt";
export const COMMAND = `echo done > ${FILE}`;

/** A fake platform on which Ada, an owner, and Bob each have a direct chat with the agent. */
interface Place {
  readonly account: ChannelAccount;
  /** Ada and Bob, with their ids on the platform. */
  readonly ids: { readonly ada: string; readonly bob: string };
  /** How far the gateway's clock is ahead of the real one. Absent: it is not. */
  aheadMs?(): number;
  /** True when the platform can deliver messages to the gateway. */
  isReady(): boolean;
  /** Sends a person's message. `port`: the port of the gateway. */
  says(id: string, text: string, port: number): unknown;
  /** Returns the texts that a person has received, in order, without markup. */
  seenBy(id: string): string[];
  /** Absent if the platform has no buttons. */
  readonly buttons?: Buttons;
}

/** A text of the agent with its buttons. */
interface Shown {
  readonly id: string;
  readonly text: string;
  /** For each button, its label and the command for which it stands. */
  readonly buttons: readonly (readonly [label: string, command: string])[];
}

interface Buttons {
  /** Returns the texts in Ada's chat. */
  shown(): Shown[];
  /**
   * Presses a button, with this command. Returns a function that returns the notice that only this person
   * sees: empty if there is none, undefined until the press was answered. `isHasty`: presses at once.
   */
  press(who: "ada" | "bob", text: Shown, command: string, isHasty?: boolean): () => string | undefined;
}

export async function onTelegram(): Promise<Place> {
  const server = await startTelegram();
  const bot = server.addBot(telegram.TOKEN, telegram.USERNAME);
  const ids = { ada: String(telegram.DIRECT), bob: "1002" };
  for (const id of Object.values(ids)) server.addChat({ id: Number(id), type: "private" });
  let aheadMs = 0;
  return {
    ...{ account: telegram.account(server.url), ids },
    isReady: () => true,
    aheadMs: () => aheadMs,
    says(id, text) {
      server.nextMessageId += 1;
      const chat = { id: Number(id), type: "private", first_name: "Somebody" };
      const sender = { ...telegram.ADA, id: Number(id), username: `user_${id}` };
      const message = { message_id: server.nextMessageId, date: 1_790_000_000, chat, from: sender, text };
      server.push(bot, { message });
    },
    seenBy: (id) => server.sent.filter(({ chatId }) => String(chatId) === id).map(({ text }) => text),
    buttons: {
      shown: () =>
        server.sent
          .filter(({ chatId }) => String(chatId) === ids.ada)
          .map(({ messageId, text, buttons }) => ({
            ...{ id: String(messageId), text },
            buttons: buttons.flat().map(({ text: label, callback_data }) => [label, callback_data]),
          })),
      press(who, { id }, data, isHasty = false) {
        const message = server.sent.find(({ messageId }) => String(messageId) === id);
        if (message === undefined) throw new Error("no such message");
        const from = { ...telegram.ADA, id: Number(ids[who]) };
        // The button has the time of the gateway's clock.
        const sentAt = Number.parseInt(data.split("#")[1] ?? "", 36) * 1_000;
        aheadMs = sentAt + (isHasty ? 900 : 5_000) - Date.now();
        const press = server.press(bot, { message, from, data });
        return () => press.notice;
      },
    },
  };
}

export async function onDiscord(): Promise<Place> {
  const server = await startDiscord();
  const chats: Record<string, string> = { [ADA_OF_DISCORD.id]: DIRECT, [BOB.id]: server.nextId() };
  server.channels.set(chats[BOB.id] ?? "", { id: chats[BOB.id], type: 1, recipients: [BOB] });
  return {
    account: discordAccount(server.restUrl),
    ids: { ada: ADA_OF_DISCORD.id, bob: BOB.id },
    isReady: () => server.commands.length > 0 && server.gateway.identified.length > 0,
    says(id, content) {
      const author = id === BOB.id ? BOB : ADA_OF_DISCORD;
      server.say({ channel_id: chats[id], author, content });
    },
    seenBy: (id) =>
      server.sent
        .filter(({ channelId }) => channelId === chats[id])
        .map(({ body }) => body.content.replace(/[`\\]/g, "")),
    buttons: {
      shown: () =>
        server.sent
          .filter(({ channelId }) => channelId === DIRECT)
          .map(({ id, body }) => ({
            ...{ id, text: body.content.replace(/[`\\]/g, "") },
            buttons: (body.components?.[0]?.components ?? []).map((one: Json) => [one.label, one.custom_id]),
          })),
      press(who, { id }, customId, isHasty = false) {
        const user = who === "bob" ? BOB : ADA_OF_DISCORD;
        const press = server.press(id, { user, customId, afterMs: isHasty ? 900 : 5_000 });
        return () => press.response && (press.response.type === 6 ? "" : press.response.data.content);
      },
    },
  };
}

export async function onWhatsApp(): Promise<Place> {
  const server = await startWhatsApp();
  return {
    account: whatsAppAccount(server.graphUrl),
    ids: { ada: "16505551234", bob: "16505555678" },
    isReady: () => true,
    async says(id, text, port) {
      const contacts = [{ profile: { name: "Somebody" }, wa_id: id }];
      const body = webHook({ contacts, messages: [said(text, { from: id })] });
      await server.post(`http://127.0.0.1:${port}/channels/whatsapp/default`, body);
    },
    seenBy: (id) => server.sent.filter(({ to }) => to === id).map(({ body }) => seenText(body)),
  };
}

export async function onSignal(): Promise<Place> {
  const server = await startSignalServer({ accounts: [OWN] });
  const bob = { number: "+491700000003", aci: "33333333-3333-4333-8333-333333333333" };
  return {
    account: signalAccount(server.url),
    ids: { ada: ADA_OF_SIGNAL.number, bob: bob.number },
    isReady: () => server.listeners() === 1,
    says(id, text) {
      const dataMessage = dataOf(text);
      const sender = from(id === bob.number ? bob : ADA_OF_SIGNAL);
      server.event(OWN.number, { envelope: { ...sender, timestamp: dataMessage.timestamp, dataMessage } });
    },
    seenBy: (id) => server.sent.filter(({ to }) => to === id).map(({ message }) => message),
  };
}

export async function onIMessage(): Promise<Place> {
  const desk = await startImsgDesk();
  const own = {
    channel: "imessage",
    command: desk.command,
    names: ["Parley"],
    attachmentFolders: [],
  } as const;
  return {
    account: { ...OPEN_ACCOUNT, ...own },
    ids: { ada: "+15550100", bob: "+15550101" },
    isReady: () => desk.watches() === 1,
    says(id, text) {
      const chat = { chat_identifier: id, chat_guid: `iMessage;-;${id}`, is_group: false };
      const facts = { chat_id: Number(id), sender: id, is_from_me: false };
      const guid = `G-${desk.rows.length}`;
      desk.add({ ...chat, ...facts, guid, text, created_at: "2026-01-01T00:00:00.000Z" });
    },
    seenBy: (id) => desk.sent.filter(({ to }) => to === id).map(({ text }) => text),
  };
}

/** Starts a gateway at this place. Its agent asks an owner before it runs a command. */
export async function open(place: Place) {
  const dir = temporaryFolder();
  const workspace = join(dir, "workspace");
  mkdirSync(workspace, { recursive: true });
  const { exec } = settingsWith().tools;
  const base = settingsWith({
    agents: [agentSettings("main", { workspace })],
    channels: [place.account],
    owners: [`${place.account.channel}:${place.ids.ada}`],
    tools: { exec: { ...exec, approval: "always" } },
  });
  const settings: Settings = { ...base, store: { dir, durability: "normal" } };
  const quiet = quietWorld();
  const now = (): number => quiet.clock.now() + (place.aheadMs?.() ?? 0);
  const world = { ...quiet, clock: { ...quiet.clock, now } };
  const opened = await openApp({ settings, world, version: "0.0.0-test", environment: {} });
  if (!opened.ok) throw new Error(opened.error);
  const app: App = opened.value;
  cleanup(() => app.close(0));
  await expect.poll(place.isReady, { timeout: 20_000 }).toBe(true);
  return {
    app,
    workspace,
    hasRun: () => existsSync(join(workspace, FILE)),
    says: async (who: "ada" | "bob", text: string) => place.says(place.ids[who], text, app.port),
    seenBy: (who: "ada" | "bob") => place.seenBy(place.ids[who]),
    buttons: place.buttons,
    runs: () => app.store.db.selectFrom("runs").select(["state", "reply"]).execute(),
  };
}

export type Stage = Awaited<ReturnType<typeof open>>;
