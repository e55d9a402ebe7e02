// Owners answer permission requests on every chat platform: a whole gateway, the real channel, and a fake
// platform with the real wire format. Bob may write on each platform, but is not an owner.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, openApp } from "../../src/app.ts";
import type { ChannelAccount } from "../../src/core/shapes/settings/channels.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { cleanup, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { ADA as ADA_OF_DISCORD, BOB, DIRECT, startDiscord } from "../kit/platforms/discord-server.ts";
import { startImsgDesk } from "../kit/platforms/imsg-desk.ts";
import { OPEN_ACCOUNT } from "../kit/platforms/open-account.ts";
import { ADA as ADA_OF_SIGNAL, dataOf, from, OWN, signalAccount } from "../kit/platforms/signal-people.ts";
import { startSignalServer } from "../kit/platforms/signal-server.ts";
import { startTelegram } from "../kit/platforms/telegram/server.ts";
import { seenText, startWhatsApp, webHook } from "../kit/platforms/whatsapp-server.ts";
import { until } from "../kit/until.ts";
import { agentSettings, settingsWith } from "../tools/app.ts";
import { discordAccount } from "./discord/ground.ts";
import * as telegram from "./telegram/ground.ts";
import { said, whatsAppAccount } from "./whatsapp/kit.ts";

const MAIN = "agent:main:main";
const FILE = "approved.txt";
const COMMAND = `echo done > ${FILE}`;

/** A fake platform on which Ada, an owner, and Bob each have a direct chat with the agent. */
interface Place {
  readonly account: ChannelAccount;
  /** Ada and Bob, with their ids on the platform. */
  readonly ids: { readonly ada: string; readonly bob: string };
  /** True when the platform can deliver messages to the gateway. */
  isReady(): boolean;
  /** Sends a person's message. `port`: the port of the gateway. */
  says(id: string, text: string, port: number): unknown;
  /** Returns the texts that a person has received, in order, without markup. */
  seenBy(id: string): string[];
}

async function onTelegram(): Promise<Place> {
  const server = await startTelegram();
  const bot = server.addBot(telegram.TOKEN, telegram.USERNAME);
  const ids = { ada: String(telegram.DIRECT), bob: "1002" };
  for (const id of Object.values(ids)) server.addChat({ id: Number(id), type: "private" });
  return {
    ...{ account: telegram.account(server.url), ids },
    isReady: () => true,
    says(id, text) {
      server.nextMessageId += 1;
      const chat = { id: Number(id), type: "private", first_name: "Somebody" };
      const sender = { ...telegram.ADA, id: Number(id), username: `user_${id}` };
      const message = { message_id: server.nextMessageId, date: 1_790_000_000, chat, from: sender, text };
      server.push(bot, { message });
    },
    seenBy: (id) => server.sent.filter(({ chatId }) => String(chatId) === id).map(({ text }) => text),
  };
}

async function onDiscord(): Promise<Place> {
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
  };
}

async function onWhatsApp(): Promise<Place> {
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

async function onSignal(): Promise<Place> {
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

async function onIMessage(): Promise<Place> {
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

const PLACES = [
  ["Telegram", onTelegram],
  ["Discord", onDiscord],
  ["WhatsApp", onWhatsApp],
  ["Signal", onSignal],
  ["iMessage", onIMessage],
] as const;

/** Starts a gateway at this place. Its agent asks an owner before it runs a command. */
async function open(place: Place) {
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
  const opened = await openApp({ settings, world: quietWorld(), version: "0.0.0-test", environment: {} });
  if (!opened.ok) throw new Error(opened.error);
  const app: App = opened.value;
  cleanup(() => app.close(0));
  await expect.poll(place.isReady).toBe(true);
  return {
    app,
    hasRun: () => existsSync(join(workspace, FILE)),
    says: async (who: "ada" | "bob", text: string) => place.says(place.ids[who], text, app.port),
    seenBy: (who: "ada" | "bob") => place.seenBy(place.ids[who]),
    runs: () => app.store.db.selectFrom("runs").select(["state", "reply"]).execute(),
  };
}

type Stage = Awaited<ReturnType<typeof open>>;

/** Returns the first match in the texts that Ada has received. */
const toldAda = (stage: Stage, pattern: RegExp): Promise<string> =>
  until(() => stage.seenBy("ada").flatMap((text) => pattern.exec(text)?.[1] ?? [])[0]);

/** Lets Bob try every command about the request. He is refused, and does not see the title. */
async function bobIsRefused(stage: Stage, id: string): Promise<void> {
  const names = ["approvals", "allow", "deny"];
  for (const [at, name] of names.entries()) {
    await stage.says("bob", name === "approvals" ? "/approvals" : `/${name} ${id}`);
    await expect.poll(() => stage.seenBy("bob")).toHaveLength(at + 1);
  }
  expect(stage.seenBy("bob")).toEqual(names.map((name) => `/${name} is for owners only.`));
  expect(stage.hasRun()).toBe(false);
}

test.each(PLACES)(
  "on %s, an owner allows a command in the chat where the agent asks, and nobody else can",
  async (_, place) => {
    const stage = await open(await place());
    await stage.says("ada", `run: ${COMMAND}`);
    const id = await toldAda(stage, /\/allow ([0-9a-f]{8})/);
    expect(stage.seenBy("ada")[0]).toContain(COMMAND);
    await bobIsRefused(stage, id);
    await stage.says("ada", `/allow ${id}`);
    await expect.poll(stage.hasRun).toBe(true);
    await expect.poll(() => stage.seenBy("ada")).toHaveLength(3);
    expect(stage.seenBy("ada")).toContain(`Allowed for main: ${COMMAND}`);
    await expect.poll(stage.runs).toMatchObject([{ state: "ok" }]);
  },
);

test.each(PLACES)(
  "on %s, an owner finds and denies a command of work that began elsewhere, and nobody else can",
  async (_, place) => {
    const stage = await open(await place());
    const input = { text: `run: ${COMMAND}` };
    expect(await stage.app.engine.accept({ sessionKey: MAIN, input })).toMatchObject({ ok: true });
    await until(async () => (await stage.runs())[0]?.state === "waiting");
    await stage.says("ada", "/approvals");
    const id = await toldAda(stage, /([0-9a-f]{8}) main: echo done/);
    await bobIsRefused(stage, id);
    await stage.says("ada", `/deny ${id}`);
    await expect.poll(() => stage.seenBy("ada")[1]).toBe(`Denied for main: ${COMMAND}`);
    await expect.poll(async () => (await stage.runs())[0]?.state).toBe("ok");
    expect((await stage.runs())[0]?.reply).toContain("denied by the owner");
    expect(stage.hasRun()).toBe(false);
  },
);
