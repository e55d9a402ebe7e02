// Sub-agents in threads, with a whole gateway and fake platforms that use the real wire formats.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, openApp } from "../../../src/app.ts";
import type { TelegramAccount } from "../../../src/features/telegram/telegram.ts";
import { listBindings } from "../../../src/store/queries/channels/thread-bindings.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { startTelegram } from "../../kit/platforms/telegram/server.ts";
import type { Json } from "../../kit/platforms/telegram/state.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";
import { ADA, account, DIRECT, FORUM, TOKEN, USERNAME } from "./ground.ts";

const WORK: Json = { id: FORUM, type: "supergroup", title: "Work", is_forum: true };
const PRIVATE: Json = { id: DIRECT, type: "private", first_name: "Ada" };

/**
 * Starts a gateway with one bot, which is in a forum and in a person's chat. The gateway uses the offline
 * model.
 */
async function open(more: Partial<TelegramAccount> = {}) {
  const server = await startTelegram();
  const bot = server.addBot(TOKEN, USERNAME);
  server.addChat({ id: FORUM, type: "supergroup", isForum: true });
  server.addChat({ id: DIRECT, type: "private" });
  const dir = temporaryFolder();
  const workspace = join(dir, "workspace");
  mkdirSync(workspace, { recursive: true });
  const base = settingsWith({
    agents: [agentSettings("main", { workspace })],
    channels: [account(server.url, more)],
  });
  const settings = { ...base, store: { dir, durability: "normal" as const }, owners: [`telegram:${DIRECT}`] };
  const opened = await openApp({ settings, world: quietWorld(), version: "0.0.0-test", environment: {} });
  if (!opened.ok) throw new Error(opened.error);
  cleanup(() => opened.value.close(0));
  let id = 100;
  const says = (text: string, chat: Json, topic?: string): void => {
    id += 1;
    const offset = text.indexOf(`@${USERNAME}`);
    const entity = { type: "mention", offset, length: USERNAME.length + 1 };
    const mention = offset < 0 ? {} : { entities: [entity] };
    const place = topic === undefined ? {} : { is_topic_message: true, message_thread_id: Number(topic) };
    const message = { message_id: id, date: 1_790_000_000, chat, from: ADA, text, ...mention, ...place };
    server.push(bot, { message });
  };
  const shown = (): string[] => server.sent.map(({ threadId, text }) => `${threadId ?? ""}: ${text}`);
  return { app: opened.value, server, says, shown };
}

/** Waits until a message that contains `words` was sent. Messages of other runs may follow it. */
const sent = (shown: () => string[], words: string) =>
  expect.poll(shown).toContainEqual(expect.stringContaining(words));

const places = (app: App) => listBindings(app.store.db, { limit: 10 });

test("in a forum a sub-agent gets its own topic: its result appears there, and people need not mention the bot there", async () => {
  const { app, says, shown } = await open();
  says(`spawn in a thread: say the beans are counted @${USERNAME}`, WORK);
  await expect.poll(() => places(app)).toHaveLength(1);
  const [bound] = await places(app);
  const topic = bound?.route.threadId ?? "";
  expect(bound).toMatchObject({ kind: "created", route: { channel: "telegram", to: String(FORUM) } });
  await expect.poll(shown).toContain(`${topic}: the beans are counted @${USERNAME}`);
  // In the topic nobody has to mention the bot. Elsewhere in the forum the bot answers only mentions.
  says("say the peas, too", WORK, topic);
  await expect.poll(shown).toContain(`${topic}: the peas, too`);
  says("/session unbind", WORK, topic);
  await expect.poll(() => places(app)).toEqual([]);
  await expect.poll(() => shown().at(-1) ?? "").toMatch(new RegExp(`^${topic}: .*no longer bound`));
  const { length } = shown();
  says("say nobody hears this", WORK, topic);
  says(`say hello again @${USERNAME}`, WORK, topic);
  await expect.poll(shown).toHaveLength(length + 1);
  expect(shown().at(-1)).toBe(`${topic}: hello again @${USERNAME}`);
  expect(shown().filter((text) => text.includes("beans are counted"))).toHaveLength(1);
});

test("in a chat without topics the chat itself is bound until somebody removes the binding", async () => {
  const { app, says, shown } = await open();
  says("spawn in a thread: say the beans are counted", PRIVATE);
  await expect.poll(shown).toContain(": the beans are counted");
  const [bound] = await places(app);
  expect(bound?.kind).toBe("bound");
  says("who are you", PRIVATE);
  await sent(shown, bound?.sessionKey ?? "no key");
  says("/session unbind", PRIVATE);
  await sent(shown, "no longer bound");
  says("say hello", PRIVATE);
  await expect.poll(shown).toContain(": hello");
  const runs = await app.store.db
    .selectFrom("runs")
    .select("session_key")
    .where("reply", "=", "hello")
    .execute();
  expect(runs).toEqual([{ session_key: "agent:main:main" }]);
});

test("if bindings are disabled, the error that the agent gets names the setting that enables them", async () => {
  const { app, says, shown } = await open({
    threadBindings: { enabled: false, idleHours: 24, maxAgeHours: 0 },
  });
  says("spawn in a thread: say the beans are counted", PRIVATE);
  await sent(shown, "threadBindings.enabled");
  expect(await places(app)).toEqual([]);
});
