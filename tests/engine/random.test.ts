// Whatever people, agents, the disk and the process do, in any order: once it is quiet, everything accepted has
// ended, once, and everybody who asked was told once. A failure prints its seed: `storyOf(SEED)` does the same again.

import { expect, test } from "vitest";
import type { DeliveryOutcome } from "../../src/channels/channel.ts";
import { deleteSession, resetSession } from "../../src/flows/lifecycle.ts";
import { getSession, insertSession } from "../../src/store/sessions.ts";
import type { Store } from "../../src/store/sql.ts";
import { getWait } from "../../src/store/waits.ts";
import type { Timer, World } from "../../src/world.ts";
import { type Dice, dice } from "../kit/dice.ts";
import { assistantText, sessionRow, temporaryFolder } from "../kit/engine.ts";
import { type Actor, type FlowApp, openFlowApp, type Play } from "../kit/flow-app.ts";
import {
  checkChains,
  checkDeliveries,
  checkFlows,
  checkRuns,
  checkTold,
  checkTranscripts,
  checkWaiting,
} from "../kit/flow-checks.ts";
import { type FakeWorld, fakeWorld } from "../kit/world.ts";

/** The simulation tells far more, of whole gateways (`tests/sim`): these need no agent and no tool to find a fault. */
const SEEDS = 60;
const MAIN = ["agent:main:main", "agent:research:main", "agent:writer:main"];
const CHATS = ["agent:main:chat:one", "agent:research:chat:two"];
const KEYS = [...MAIN, ...CHATS];
const LIMITS = { maxPingPongTurns: 3, maxHops: 5, maxChainRuns: 14 };
/** Fewer than sessions, so that lanes wait for one. */
const SLOTS = 2;
const STEPS_OF_A_LIFE = 14;
const SETTLING_ROUNDS_MAX = 600;

/** What outlives a process in this test: the disk, the clock, and what was seen. */
interface Story {
  readonly seed: number;
  readonly dir: string;
  readonly world: FakeWorld;
  readonly dice: Dice;
  readonly accepted: string[];
  /** By session: lane numbers in the order in which turns began. */
  readonly begun: Map<string, number[]>;
  /** By call: what the sender was given. */
  readonly results: Map<string, Record<string, unknown>>;
  readonly wrong: string[];
}

/** One process: who executes in it, and whether its disk is full now and then. */
interface Life {
  readonly inside: Set<string>;
  badDisk: boolean;
  dead: boolean;
}

function newLife(): Life {
  return { inside: new Set(), badDisk: false, dead: false };
}

/** The story's world as one process sees it: once it is dead, none of its timers fires. */
function worldOf(story: Story, life: Life): World {
  const { clock } = story.world;
  const at = (atMs: number, fire: () => void): Timer => clock.at(atMs, () => life.dead || fire());
  return { ...story.world, clock: { ...clock, at } };
}

function pause(story: Story, ms: number, signal?: AbortSignal): Promise<void> {
  const { clock } = story.world;
  return new Promise((resolve) => {
    clock.at(clock.now() + ms, resolve);
    signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Lets time pass until something has come to its end, or the process that does it is dead. */
async function inTime(story: Story, life: Life, what: string, work: Promise<unknown>): Promise<void> {
  let over = false;
  const watched = work.finally(() => {
    over = true;
  });
  watched.catch(() => undefined);
  for (let round = 0; round < 500 && !over && !life.dead; round += 1)
    await story.world.advance(round < 100 ? 1 : 20);
  if (life.dead) return;
  if (!over) throw new Error(`${what} does not come to an end`);
  await watched;
}

/** Asks another session by a stored tool call; the same call in every attempt of the run. */
async function askOther(story: Story, actor: Actor, luck: Dice, name: string): Promise<void> {
  const { handle } = actor;
  const { runId } = handle.run;
  const to = luck.of(KEYS);
  const seconds = luck.of([0, 0, 0.005, 0.03, 0.2, 5]);
  const result = await actor.send(to, `${name} of ${runId}`, seconds, name);
  story.results.set(`${runId}:${name}`, result);
  const text = [{ type: "text" as const, text: JSON.stringify(result) }];
  const id = `${name}-${runId}`;
  const facts = { role: "toolResult" as const, toolCallId: id, toolName: "sessions_send", isError: false };
  await handle.append({ ...facts, id: `result-${id}`, content: text, timestamp: 1 });
}

/** A turn whose choices depend on the run alone, so that a later attempt makes the same ones. */
async function act(story: Story, actor: Actor): Promise<string> {
  const { handle } = actor;
  const { runId } = handle.run;
  const luck = dice(`${story.seed} ${runId}`);
  const asks = luck.chance(actor.step === "message" ? 0.6 : 0.3) ? 1 + luck.below(2) : 0;
  if (luck.chance(0.4)) await pause(story, luck.below(60), luck.chance(0.7) ? handle.signal : undefined);
  if (asks > 0) {
    const names = Array.from({ length: asks }, (_, at) => `call${at}`);
    const content = names.map((name) => {
      return { type: "toolCall" as const, id: `${name}-${runId}`, name: "sessions_send", arguments: {} };
    });
    await handle.append({ ...assistantText(`asks-${runId}`, ""), content, stopReason: "toolUse" });
    await Promise.all(names.map((name) => askOther(story, actor, luck, name)));
  }
  if (luck.chance(0.12)) throw new Error("the model failed");
  const text = luck.chance(0.2) ? luck.of(["REPLY_SKIP", "ANNOUNCE_SKIP", ""]) : `words of ${runId}`;
  handle.text(text);
  if (luck.chance(0.3)) await pause(story, luck.below(40), handle.signal);
  return text;
}

function playOf(story: Story, life: Life): Play {
  return async (actor) => {
    const { sessionKey, laneSeq, runId } = actor.handle.run;
    if (life.inside.has(sessionKey)) story.wrong.push(`I1: ${runId} began while ${sessionKey} was executing`);
    life.inside.add(sessionKey);
    const begun = story.begun.get(sessionKey) ?? [];
    story.begun.set(sessionKey, begun);
    begun.push(laneSeq);
    try {
      return await act(story, actor);
    } finally {
      life.inside.delete(sessionKey);
    }
  };
}

function channelOf(story: Story): () => DeliveryOutcome {
  return () => {
    const roll = story.dice.below(10);
    if (roll === 0) return { kind: "refused", error: "no" };
    if (roll === 1) return { kind: "retry", error: "later", afterMs: 10 };
    if (roll === 2) throw new Error("the channel broke");
    return { kind: "sent" };
  };
}

async function open(story: Story, life: Life, crashAt?: number): Promise<FlowApp> {
  const play = playOf(story, life);
  return openFlowApp({
    dir: story.dir,
    world: worldOf(story, life),
    plays: Object.fromEntries(KEYS.map((key) => [key, play])),
    choices: { session: { agentToAgent: LIMITS } },
    channel: channelOf(story),
    dies: true,
    maxConcurrent: SLOTS,
    refuses: () => life.badDisk && story.dice.chance(0.15),
    ...(crashAt === undefined
      ? {}
      : { crash: { commit: crashAt, when: story.dice.of(["before", "after"] as const) } }),
  });
}

async function makeChats(store: Store): Promise<void> {
  await store.transaction(async (tx) => {
    for (const key of CHATS) {
      const agentId = key.split(":")[1] ?? "main";
      await insertSession(tx, sessionRow(key, { agentId, sessionId: `id-${agentId}` }));
    }
  });
}

/** One thing that a person does. What the store or a missing session refuses is refused. */
async function doSomething(story: Story, app: FlowApp): Promise<void> {
  const { dice: roll } = story;
  const key = roll.of(KEYS);
  const session = await getSession(app.store.db, key);
  if (session === undefined) return;
  const facts = {
    engine: app.engine,
    settings: app.settings,
    outbound: { deliveryQueued() {} },
    dropTranscript: async () => {},
  };
  const what = roll.below(20);
  if (what < 10) {
    const timeoutMs = roll.chance(0.2) ? roll.below(50) + 1 : 0;
    story.accepted.push((await app.tell(key, "from a person", { timeoutMs })).runId);
  } else if (what < 12) {
    // Nobody awaits this one: a caller may be gone long before it is answered.
    void app.send(key, roll.of(KEYS), "from an operator", roll.of([0, 0.02, 1])).catch(() => undefined);
  } else if (what < 15) {
    const runs = await app.runs(key);
    const run = runs.length === 0 ? undefined : roll.of(runs.slice(-4));
    if (run !== undefined) await app.engine.abort({ sessionKey: key, runId: run.runId });
  } else if (what < 17) await app.engine.abort({ sessionKey: key });
  else if (what < 18) await resetSession(facts, session);
  else if (what < 19 && roll.chance(0.3)) {
    await deleteSession(facts, session, { deleteTranscript: roll.chance(0.5) });
  } else await app.route(key);
}

/** A process from its start to its crash, or its planned stop. */
async function live(story: Story): Promise<void> {
  const { dice: roll, world } = story;
  const life: Life = newLife();
  const crashes = roll.chance(0.6);
  const app = await open(story, life, crashes ? 4 + roll.below(90) : undefined);
  void app.crashed().then(() => {
    life.dead = true;
  });
  for (let step = 0; step < STEPS_OF_A_LIFE && !life.dead; step += 1) {
    life.badDisk = roll.chance(0.2);
    const doing = doSomething(story, app).catch(() => undefined);
    if (roll.chance(0.5)) await inTime(story, life, "a person's request", doing);
    await world.advance(roll.below(25));
    if (!life.dead) await checkWaiting(app.store.db, world.clock.now());
  }
  life.badDisk = false;
  if (!life.dead) await stopInOrder(story, app, life);
}

async function stopInOrder(story: Story, app: FlowApp, life: Life): Promise<void> {
  const before = await app.store.db.selectFrom("runs").select(["run_id", "crashes"]).execute();
  await inTime(story, life, "engine.stop", app.engine.stop(story.dice.of([0, 20, 200])));
  if (life.dead) return;
  if (life.inside.size > 0) story.wrong.push(`after a stop ${[...life.inside].join()} goes on`);
  const { running, waiting, slots } = await app.engine.load();
  expect(slots.taken, "a stop leaves no slot taken").toBe(0);
  if (running + waiting > 0) story.wrong.push(`a stop left ${running} running and ${waiting} waiting`);
  const after = await app.store.db.selectFrom("runs").select(["run_id", "crashes"]).execute();
  const crashes = new Map(before.map((row) => [row.run_id, row.crashes]));
  for (const row of after) expect(row.crashes, "a stop is no crash").toBe(crashes.get(row.run_id) ?? 0);
  await inTime(story, life, "stop", app.stop(0));
  life.dead = true;
}

/** The last process: works everything off. */
async function settle(story: Story, life: Life): Promise<FlowApp> {
  const app = await open(story, life);
  for (let round = 0; round < SETTLING_ROUNDS_MAX; round += 1) {
    // Short steps while runs wait for each other, long ones while a delivery backs off.
    await story.world.advance(round < 200 ? 20 : 1_000);
    if (round % 5 === 0 && (await app.isQuiet())) break;
  }
  const left = await app.store.db
    .selectFrom("runs")
    .select(["run_id", "session_key", "state", "flow_step"])
    .where("state", "in", ["queued", "running", "waiting"])
    .execute();
  expect(left, "work is left that nobody does").toEqual([]);
  // What ended its row is still on its way out of memory.
  for (let round = 0; round < 10; round += 1) await story.world.advance(20);
  return app;
}

async function checkStory(story: Story, app: FlowApp): Promise<void> {
  const { db } = app.store;
  expect(story.wrong).toEqual([]);
  await checkRuns(db, story.accepted);
  await checkFlows(db);
  await checkDeliveries(db);
  await checkTold(db);
  await checkTranscripts(db);
  await checkChains(db, LIMITS);
  expect((await app.engine.load()).slots.taken, "all slots are free").toBe(0);
  for (const [key, begun] of story.begun) {
    expect(begun, `I3: turns of ${key}`).toEqual(begun.toSorted((x, y) => x - y));
  }
  for (const [callId, result] of story.results) {
    const state = (await getWait(db, callId))?.state;
    const told = result.status === "ok" || String(result.code).startsWith("run_");
    if (told && result.runId !== undefined) expect(state, `${callId} was told`).toBe("answered");
    if (result.status === "timeout") expect(state, `${callId} timed out`).toBe("ended");
  }
}

async function storyOf(seed: number): Promise<void> {
  const world = fakeWorld({ seed });
  const story: Story = {
    seed,
    dir: temporaryFolder(),
    world,
    dice: dice(`story ${seed}`),
    accepted: [],
    begun: new Map(),
    results: new Map(),
    wrong: [],
  };
  const life = newLife();
  const first = await open(story, life);
  await makeChats(first.store);
  await first.route(...KEYS.filter(() => story.dice.chance(0.5)));
  await inTime(story, life, "stop", first.stop(0));
  for (let lives = 1 + story.dice.below(2); lives > 0; lives -= 1) await live(story);
  const last = await settle(story, life);
  await checkStory(story, last);
  await inTime(story, life, "stop", last.stop(0));
}

test("I1-I8: after any life of a gateway, everything accepted has ended once and everybody was told once", async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    try {
      await storyOf(seed);
    } catch (error) {
      throw new Error(`SEED=${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
}, 120_000);
