// Random actions of people, agents, disk and process, in any order. At the end every accepted run has ended
// once, and every caller has one answer. A failure prints its seed: `storyOf(SEED)` repeats the run.

import { expect, test } from "vitest";
import { waitsOfCall } from "../../src/store/queries/runs/waits.ts";
import { dice } from "../kit/dice.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { type FlowApp, openFlowApp } from "../kit/engine/flow-app.ts";
import { checkTalk, checkWaiting } from "../kit/engine/flow-checks.ts";
import { inTime, type Life, pauseIn, worldOf } from "../kit/engine/lives.ts";
import { cast, doSomething, KEYS, LIMITS, makeChats, type Talk } from "../kit/engine/random-talk.ts";
import { type FakeWorld, fakeWorld } from "../kit/world.ts";

/**
 * Only a few seeds, because the simulation (`tests/sim`) plays many more stories of whole gateways. These
 * find faults of the engine alone.
 */
const SEEDS = 60;
/** Fewer slots than sessions, so that lanes wait. */
const SLOTS = 2;
const STEPS_OF_A_LIFE = 14;
const SETTLING_ROUNDS_MAX = 600;

/** The state that survives the crash of a process in the test: the disk, the clock, and the observations. */
interface Story extends Talk {
  readonly dir: string;
  readonly world: FakeWorld;
  /** The sender's result, by id of the tool call. */
  readonly results: Map<string, Record<string, unknown>>;
  readonly wrong: string[];
}

/** One process: its executor, and whether its disk is full at times. */
interface Process extends Life {
  readonly inside: Set<string>;
  badDisk: boolean;
}

function newProcess(): Process {
  return { inside: new Set(), badDisk: false, dead: false };
}

async function open(story: Story, life: Process, crashAt?: number): Promise<FlowApp> {
  return openFlowApp({
    ...cast(story, async ({ handle: { run } }, act) => {
      const { sessionKey, runId } = run;
      if (life.inside.has(sessionKey))
        story.wrong.push(`I1: ${runId} began while ${sessionKey} was executing`);
      life.inside.add(sessionKey);
      try {
        return await act();
      } finally {
        life.inside.delete(sessionKey);
      }
    }),
    dir: story.dir,
    world: worldOf(story.world, life),
    dies: true,
    maxConcurrent: SLOTS,
    refuses: () => life.badDisk && story.dice.chance(0.15),
    ...(crashAt === undefined
      ? {}
      : { crash: { commit: crashAt, when: story.dice.of(["before", "after"] as const) } }),
  });
}

/** Starts a process and runs it until it crashes or stops. */
async function live(story: Story): Promise<void> {
  const { dice: roll, world } = story;
  const life = newProcess();
  const crashes = roll.chance(0.6);
  const app = await open(story, life, crashes ? 4 + roll.below(90) : undefined);
  void app.crashed().then(() => {
    life.dead = true;
  });
  for (let step = 0; step < STEPS_OF_A_LIFE && !life.dead; step += 1) {
    life.badDisk = roll.chance(0.2);
    const doing = doSomething(story, app).catch(() => undefined);
    if (roll.chance(0.5)) await inTime(world, life, "a person's request", doing);
    await world.advance(roll.below(25));
    if (!life.dead) await checkWaiting(app.store.db, world.clock.now());
  }
  life.badDisk = false;
  if (!life.dead) await stopInOrder(story, app, life);
}

async function stopInOrder(story: Story, app: FlowApp, life: Process): Promise<void> {
  const { world } = story;
  const before = await app.store.db.selectFrom("runs").select(["run_id", "crashes"]).execute();
  await inTime(world, life, "engine.stop", app.engine.stop(story.dice.of([0, 20, 200])));
  if (life.dead) return;
  if (life.inside.size > 0) story.wrong.push(`after a stop ${[...life.inside].join()} goes on`);
  const { running, waiting, slots } = await app.engine.load();
  expect(slots.taken, "a stop leaves no slot taken").toBe(0);
  if (running + waiting > 0) story.wrong.push(`a stop left ${running} running and ${waiting} waiting`);
  const after = await app.store.db.selectFrom("runs").select(["run_id", "crashes"]).execute();
  const crashes = new Map(before.map((row) => [row.run_id, row.crashes]));
  for (const row of after) expect(row.crashes, "a stop is no crash").toBe(crashes.get(row.run_id) ?? 0);
  await inTime(world, life, "stop", app.stop(0));
  life.dead = true;
}

/** Runs the last process until all work is finished. */
async function settle(story: Story, life: Process): Promise<FlowApp> {
  const app = await open(story, life);
  for (let round = 0; round < SETTLING_ROUNDS_MAX; round += 1) {
    // Short steps while runs wait for each other, long ones while a delivery waits for its retry.
    await story.world.advance(round < 200 ? 20 : 1_000);
    if (round % 5 === 0 && (await app.isQuiet())) break;
  }
  const left = await app.store.db
    .selectFrom("runs")
    .select(["run_id", "session_key", "state", "flow_step"])
    .where("state", "in", ["queued", "running", "waiting"])
    .execute();
  expect(left, "unfinished work is left").toEqual([]);
  // A run whose row has ended may still be in memory for a short time.
  for (let round = 0; round < 10; round += 1) await story.world.advance(20);
  return app;
}

async function checkStory(story: Story, app: FlowApp): Promise<void> {
  const { db } = app.store;
  expect(story.wrong).toEqual([]);
  await checkTalk(db, story.accepted, LIMITS);
  expect((await app.engine.load()).slots.taken, "all slots are free").toBe(0);
  for (const [key, begun] of story.begun) {
    expect(begun, `I3: turns of ${key}`).toEqual(begun.toSorted((x, y) => x - y));
  }
  for (const [callId, result] of story.results) {
    const state = (await waitsOfCall(db, callId))[0]?.state;
    const told = result.status === "ok" || String(result.code).startsWith("run_");
    if (told && result.runId !== undefined) expect(state, `${callId} was told`).toBe("answered");
    if (result.status === "timeout") expect(state, `${callId} timed out`).toBe("ended");
  }
}

async function storyOf(seed: number): Promise<void> {
  const world = fakeWorld({ seed });
  const results: Story["results"] = new Map();
  const story: Story = {
    ...{ seed, dice: dice(`story ${seed}`), accepted: [], begun: new Map(), results, wrong: [] },
    dir: temporaryFolder(),
    world,
    waitSeconds: [0, 0, 0.005, 0.03, 0.2, 5],
    pause: (ms, signal) => pauseIn(world, ms, signal),
    told: (callId, result) => void results.set(callId, result),
  };
  const life = newProcess();
  const first = await open(story, life);
  await makeChats(first.store);
  await first.route(...KEYS.filter(() => story.dice.chance(0.5)));
  await inTime(world, life, "stop", first.stop(0));
  for (let lives = 1 + story.dice.below(2); lives > 0; lives -= 1) await live(story);
  const last = await settle(story, life);
  await checkStory(story, last);
  await inTime(world, life, "stop", last.stop(0));
}

test("I1-I8: after random faults every accepted run has ended once and every caller was answered once", async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    try {
      await storyOf(seed);
    } catch (error) {
      throw new Error(`SEED=${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
});
