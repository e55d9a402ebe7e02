// A whole gateway with a channel: it is started, used, stopped and started again. The platform uses the real
// wire format.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { channelParts } from "../../../src/app/channels.ts";
import { type App, openApp } from "../../../src/app.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import type { TelegramAccount } from "../../../src/features/telegram/telegram.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { startTelegram, type TelegramServer } from "../../kit/platforms/telegram/server.ts";
import type { FakeBot, Json } from "../../kit/platforms/telegram/state.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";
import { ADA, account, DIRECT, TOKEN, USERNAME } from "./ground.ts";

/** Starts a gateway with one bot, whose files are in a folder. */
async function open(dir: string, server: TelegramServer, more: Partial<TelegramAccount> = {}): Promise<App> {
  const workspace = join(dir, "workspace");
  mkdirSync(workspace, { recursive: true });
  const base = settingsWith({
    agents: [agentSettings("main", { workspace })],
    channels: [account(server.url, more)],
    labels: { mode: "off" },
  });
  const settings: Settings = { ...base, store: { dir, durability: "normal" } };
  const opened = await openApp({ settings, world: quietWorld(), version: "0.0.0-test", environment: {} });
  if (!opened.ok) throw new Error(opened.error);
  cleanup(() => opened.value.close(0));
  return opened.value;
}

async function telegram() {
  const server = await startTelegram();
  const bot = server.addBot(TOKEN, USERNAME);
  server.addChat({ id: DIRECT, type: "private" });
  let id = 100;
  const says = (text: string, fields: Json = {}): Json => {
    id += 1;
    const chat = { id: DIRECT, type: "private", first_name: "Ada" };
    const message = { message_id: id, date: 1_790_000_000, chat, from: ADA, text, ...fields };
    server.push(bot, { message });
    return message;
  };
  return { server, bot: bot as FakeBot, says };
}

const shown = (server: TelegramServer): string[] => server.sent.map(({ text }) => text);

test("a message is answered once, even after a restart", async () => {
  const dir = temporaryFolder();
  const { server, bot, says } = await telegram();
  const first = await open(dir, server);
  const message = says("good morning");
  await expect.poll(() => server.sent.length).toBe(1);
  expect(server.sent[0]).toMatchObject({ chatId: DIRECT });
  await first.close(1_000);
  server.push(bot, { message });
  const second = await open(dir, server);
  says("and good evening");
  await expect.poll(() => server.sent.length).toBe(2);
  const runs = await second.store.db.selectFrom("runs").select("state").execute();
  expect(runs).toEqual([{ state: "ok" }, { state: "ok" }]);
});

test("a person gets a file of the workspace before the answer, and the page can read it", async () => {
  const dir = temporaryFolder();
  const { server, says } = await telegram();
  const app = await open(dir, server);
  const bytes = Buffer.alloc(3_000_000, "tea");
  writeFileSync(join(dir, "workspace", "report.pdf"), bytes);
  says("send file report.pdf");
  await expect.poll(() => shown(server)).toEqual(["", "Sent report.pdf."]);
  expect(server.sent[0]).toMatchObject({ chatId: DIRECT, file: { name: "report.pdf" } });
  expect(server.sent[0]?.file?.bytes.equals(bytes)).toBe(true);
  const rows = await app.store.db.selectFrom("deliveries").select(["state", "file_id", "text"]).execute();
  expect(rows[0]).toMatchObject({ state: "sent", text: expect.stringContaining("report.pdf (2.9 MB)") });
  expect(rows[0]?.file_id).toMatch(/^file-/);
});

test("I5: a file that waits when the gateway stops is sent once after the restart", async () => {
  const dir = temporaryFolder();
  const { server, says } = await telegram();
  const first = await open(dir, server);
  writeFileSync(join(dir, "workspace", "a.txt"), "tea");
  const waits = {
    ok: false,
    error_code: 429,
    description: "Too Many Requests",
    parameters: { retry_after: 1 },
  };
  server.answerNext("sendDocument", { status: 429, body: waits });
  says("send file a.txt");
  const tried = () => server.calls.filter(({ method }) => method === "sendDocument").length;
  await expect.poll(tried).toBe(1);
  await first.close(1_000);
  writeFileSync(join(dir, "workspace", "a.txt"), "coffee");
  await open(dir, server);
  await expect.poll(() => shown(server)).toEqual(["", "Sent a.txt."]);
  expect(server.sent[0]?.file?.bytes.toString()).toBe("tea");
  expect(tried()).toBe(2);
});

test("messages that arrived while no gateway ran are answered", async () => {
  const dir = temporaryFolder();
  const { server, says } = await telegram();
  says("is anybody there?");
  await open(dir, server, { inbound: { debounceMs: 50, queue: "followup", mediaMaxBytes: 1_000 } });
  await expect.poll(() => shown(server)).toHaveLength(1);
});

test("an unknown person gets a pairing code, and an account with invalid settings affects nothing else", async () => {
  const { server, bot, says } = await telegram();
  const app = await open(temporaryFolder(), server, { dmPolicy: "pairing" });
  says("hello");
  await expect.poll(() => shown(server)[0] ?? "").toContain("Your code is");
  server.revoke(bot);
  const healthy = await fetch(`http://127.0.0.1:${app.port}/healthz`);
  expect(healthy.status).toBe(200);
});

test("CH1: without a channel, no channel code is loaded, and no listener or clean-up runs", async () => {
  const parts = channelParts({ settings: settingsWith(), world: quietWorld() });
  expect(parts.burstDue()).toBeUndefined();
  parts.listen();
  expect([...parts.channels.keys()]).toEqual([]);
  expect(parts.statuses()).toEqual([]);
  await parts.deafen();
});
