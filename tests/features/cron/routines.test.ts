// The jobs of docs/CRON.md that people know by name: a heartbeat, and a daily reset of the main session.

import { expect, test } from "vitest";
import type { Channel, OutgoingMessage } from "../../../src/channels/channel.ts";
import { isCompaction, textOf } from "../../../src/core/shapes/message.ts";
import { getSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { until } from "../../kit/until.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";

const MAIN = "agent:main:main";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ANN = { channel: "chat", to: "ann", accountId: "a" };

interface Ground {
  readonly house: House;
  readonly world: FakeWorld;
  readonly sent: OutgoingMessage[];
  /** The model answers this from now on. */
  answer(text: string): void;
}

/** Opens a gateway whose agent was last written to by Ann, at this hour UTC. */
async function open(hour: number): Promise<Ground> {
  const world = fakeWorld({ startMs: Date.UTC(2026, 0, 1, hour) });
  const sent: OutgoingMessage[] = [];
  const chat: Channel = {
    id: "chat",
    deduplicates: true,
    async deliver(message) {
      sent.push(message);
      return { kind: "sent" };
    },
  };
  let reply = "Good evening.";
  const model = scriptedModel(() => reply);
  const house = await openHouse({ model, world, channels: [chat] });
  const accepted = await house.engine.accept({ sessionKey: MAIN, input: { text: "hello" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const client = await house.client();
  await client.request("agent.wait", { runId: accepted.value.run.runId });
  await house.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: ANN }));
  const answer = (text: string): void => {
    reply = text;
  };
  return { house, world, sent, answer };
}

/** Moves the clock, and waits until the job has started this often and every run has ended. */
async function pass({ house, world }: Ground, ms: number, job: string, count: number): Promise<void> {
  const client = await house.client();
  await world.advance(ms);
  await until(async () => {
    await world.advance(0);
    const { entries } = await client.request("cron.runs", { id: job });
    return entries.length === count && entries.every(({ endedAtMs }) => endedAtMs !== undefined);
  });
}

async function textsOf({ house }: Ground): Promise<string[]> {
  const client = await house.client();
  const { messages } = await client.request("chat.history", { sessionKey: MAIN });
  return messages.map((message) => (isCompaction(message) ? "" : textOf(message)));
}

test("a heartbeat in the main session tells people nothing if all is well, and otherwise its answer", async () => {
  const ground = await open(7);
  const client = await ground.house.client();
  const message = "Read HEARTBEAT.md and follow it. Answer HEARTBEAT_OK if nothing needs attention.";
  const { job } = await client.request("cron.add", {
    message,
    schedule: { kind: "cron", expr: "*/30 8-21 * * *", tz: "UTC" },
    sessionKey: MAIN,
    deliver: { channel: "last", to: MAIN },
  });
  ground.answer("HEARTBEAT_OK");
  await pass(ground, HOUR, job.id, 1);
  expect(ground.sent).toEqual([]);
  ground.answer("The oven is on.");
  await pass(ground, 30 * MINUTE, job.id, 2);
  await until(async () => {
    await ground.world.advance(0);
    return ground.sent.length > 0;
  });
  ground.answer("**HEARTBEAT_OK**");
  await pass(ground, 30 * MINUTE, job.id, 3);
  expect(ground.sent).toMatchObject([{ text: "The oven is on.", route: ANN }]);
  // The conversation continues: the next message of a person can refer to the answer.
  expect(await textsOf(ground)).toEqual([
    ...["hello", "Good evening."],
    ...[message, "HEARTBEAT_OK", message, "The oven is on.", message, "**HEARTBEAT_OK**"],
  ]);
  const { deliveries } = await client.request("deliveries.list", {});
  expect(deliveries).toHaveLength(1);
});

test("a daily reset begins a new conversation in the main session, at its time of day in its zone, each day", async () => {
  const ground = await open(18);
  const client = await ground.house.client();
  const { job } = await client.request("cron.add", {
    message: "/reset",
    schedule: { kind: "cron", expr: "0 4 * * *", tz: "Asia/Tokyo" },
    sessionKey: MAIN,
  });
  const idOf = async () => (await getSession(ground.house.store.db, MAIN))?.sessionId;
  const first = await idOf();
  expect(job.state.nextRunAtMs).toBe(ground.world.clock.now() + HOUR);
  await ground.world.advance(HOUR - MINUTE);
  expect(await idOf()).toBe(first);
  await pass(ground, MINUTE, job.id, 1);
  const second = await idOf();
  expect(second).not.toBe(first);
  expect(await textsOf(ground)).toEqual([expect.stringContaining("started a new conversation")]);
  await pass(ground, 24 * HOUR, job.id, 2);
  expect(await idOf()).not.toBe(second);
  const { conversations } = await client.request("sessions.earlier", { key: MAIN });
  expect(conversations.map(({ sessionId }) => sessionId)).toEqual(expect.arrayContaining([first, second]));
  expect(ground.sent).toEqual([]);
  const { runId } = await client.request("chat.send", { sessionKey: MAIN, message: "good morning" });
  await client.request("agent.wait", { runId });
  expect((await textsOf(ground)).at(-2)).toBe("good morning");
});
