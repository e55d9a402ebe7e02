// The gateway crashes before and after every commit between a message and its answer. The platform sends
// unacknowledged messages again, and some acknowledged ones. Each message is processed once, and each answer
// is shown once.

import { describe, expect, test } from "vitest";
import type { InboundMessage } from "../../../src/channels/channel.ts";
import { type CrashPoint, temporaryFolder } from "../../kit/engine/engine.ts";
import { type FlowApp, type FlowAppOptions, openFlowApp } from "../../kit/engine/flow-app.ts";
import { type FakeChannel, fakeChannel, openAccount, said } from "../../kit/platforms/fake-channel.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";

const MAIN = "agent:main:main";
const DEBOUNCE_MS = 1_000;
const COMMITS_MAX = 60;

const FIRST = said("one");
const MESSAGES: readonly InboundMessage[] = [
  FIRST,
  said("two"),
  { ...FIRST, text: "one, changed", edit: "1" },
  said("/whoami"),
  said("three"),
];

/** A platform that sends unacknowledged messages again, oldest first. */
interface Platform {
  readonly acknowledged: Set<InboundMessage>;
  bring(app: FlowApp): Promise<void>;
}

function platform(): Platform {
  const acknowledged = new Set<InboundMessage>();
  return {
    acknowledged,
    async bring(app) {
      for (const message of MESSAGES) {
        if (acknowledged.has(message)) continue;
        await app.inbound.receive(message);
        acknowledged.add(message);
      }
    },
  };
}

async function isDone(app: FlowApp): Promise<boolean> {
  const { db } = app.store;
  const rows = await db.selectFrom("inbound").select("state").execute();
  const dates = await db.selectFrom("deadlines").select("key").where("kind", "=", "inbound").execute();
  return dates.length === 0 && rows.every(({ state }) => state !== "pending") && app.isQuiet();
}

async function workOff(app: FlowApp, world: FakeWorld): Promise<void> {
  while (!(await isDone(app))) await world.advance(100);
}

async function check(app: FlowApp, chats: readonly FakeChannel[]): Promise<void> {
  const users = (await app.texts(MAIN)).filter((text) => text.startsWith("user: "));
  const told = users.map((text) => text.slice("user: ".length)).join("\n\n");
  // A crash may split one run into two. An edit of the first run's message is then a separate message.
  const words = told.split("\n").filter((line) => line !== "" && !line.startsWith("["));
  expect([
    ["one, changed", "two", "three"],
    ["one", "two", "one, changed", "three"],
    ["one", "one, changed", "two", "three"],
  ]).toContainEqual(words);
  const runs = await app.runs(MAIN);
  expect(runs.map(({ state }) => state)).toEqual(runs.map(() => "ok"));
  const shown = chats.flatMap((chat) => chat.shown);
  const answers = shown.filter(({ text }) => text.startsWith("echo"));
  expect(new Set(answers.map(({ deliveryId }) => deliveryId)).size).toBe(runs.length);
  const commands = shown.filter(({ text }) => !text.startsWith("echo"));
  expect(new Set(commands.map(({ deliveryId }) => deliveryId)).size).toBe(1);
  const open = await app.store.db
    .selectFrom("deliveries")
    .select("state")
    .where("state", "!=", "sent")
    .execute();
  expect(open).toEqual([]);
}

async function crashAt(point: CrashPoint, debounceMs: number): Promise<"crashed" | "too_late"> {
  const dir = temporaryFolder();
  const world = fakeWorld();
  const { acknowledged, bring } = platform();
  const account = openAccount({ inbound: { debounceMs, queue: "followup", mediaMaxBytes: 1_000 } });
  const chats = [fakeChannel(), fakeChannel()] as const;
  const options: FlowAppOptions = { plays: {}, dir, choices: { channels: [account] } };
  const first = await openFlowApp({ ...options, world, chat: chats[0], crash: point }).catch(() => undefined);
  if (first === undefined) return "crashed";
  const outcome = await Promise.race([
    first.crashed().then(() => "crashed" as const),
    bring(first)
      .then(() => workOff(first, world))
      .then(
        () => "too_late" as const,
        () => first.crashed().then(() => "crashed" as const),
      ),
  ]);
  if (outcome === "too_late") {
    await check(first, chats);
    return outcome;
  }
  const later = fakeWorld({ startMs: world.clock.now(), seed: 2 });
  const second = await openFlowApp({ ...options, world: later, chat: chats[1] });
  // Platforms may repeat an acknowledged message, so this sends the first one again.
  const [known] = acknowledged;
  if (known !== undefined) acknowledged.delete(known);
  await bring(second);
  await workOff(second, later);
  await check(second, chats);
  await second.stop(0);
  return "crashed";
}

describe.each(["before", "after"] as const)("a crash %s any commit", (when) => {
  test.each([0, DEBOUNCE_MS])(
    "I2, I4: every message is processed once (debounceMs %i)",
    async (debounceMs) => {
      let crashes = 0;
      for (let commit = 1; commit < COMMITS_MAX; commit += 1) {
        if ((await crashAt({ commit, when }, debounceMs)) === "too_late") break;
        crashes += 1;
      }
      expect(crashes, "the story has this many commits").toBeGreaterThan(8);
      expect(crashes).toBeLessThan(COMMITS_MAX - 1);
    },
  );
});
