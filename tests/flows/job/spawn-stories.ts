// Randomized tests of sub-agents at any depth, with actions of people, limits and crashes. At the end every
// job is closed, was announced once, and has left nothing behind. A failure prints its seed: `storyOf(SEED)`
// repeats the run.

import { mkdirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { DeliveryOutcome } from "../../../src/channels/channel.ts";
import type { Session } from "../../../src/core/shapes/session.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { lostAttachments } from "../../../src/flows/job/archive.ts";
import { removeAttachments } from "../../../src/flows/job/attachments.ts";
import { deleteSession, resetSession } from "../../../src/flows/session/lifecycle.ts";
import { getSession, insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Db } from "../../../src/store/sql.ts";
import { type Dice, dice } from "../../kit/dice.ts";
import { sessionRow, temporaryFolder } from "../../kit/engine/engine.ts";
import { checkJobs, checkRuns, checkTold, checkTranscripts } from "../../kit/engine/flow-checks.ts";
import { inTime, type Life, pauseIn, worldOf } from "../../kit/engine/lives.ts";
import { openSpawnApp, type SpawnApp, type SpawnPlay, type Turn } from "../../kit/engine/spawn-app.ts";
import { whole } from "../../kit/live-text.ts";
import { PATIENCE_MS } from "../../kit/until.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";

const ROOTS = ["agent:main:main", "agent:research:main", "agent:main:chat:one"];
const STEPS_OF_A_LIFE = 12;
/**
 * One story in this number has attachments. Only few have them, because the timing of the disk makes these
 * stories slightly different each time.
 */
const ATTACHED = 5;
/** Time limit for a hanging test. On a busy machine a slow test takes half a minute. */
const DAY_MS = 24 * 3_600_000;

/** The state of a test that survives the crash of a process. */
interface Story {
  readonly seed: number;
  readonly dir: string;
  readonly workspace: string;
  readonly world: FakeWorld;
  readonly dice: Dice;
  readonly settings: Settings;
  readonly accepted: string[];
  /** The child that each tool call created. */
  readonly children: Map<string, string>;
  readonly wrong: string[];
}

interface Process extends Life {
  readonly inside: Set<Turn>;
}

function settingsOf(roll: Dice, workspace: string): Settings {
  const base = settingsWith({
    agents: ["main", "research"].map((id) => agentSettings(id, { workspace })),
    subagents: {
      maxConcurrent: 1 + roll.below(3),
      maxChildren: 2 + roll.below(3),
      maxSpawnDepth: 1 + roll.below(3),
      archiveAfterMinutes: roll.of([0, 60, 60]),
      announce: roll.of(["post", "wake"] as const),
    },
  });
  const limits = { maxPingPongTurns: 1, maxHops: 6, maxChainRuns: roll.of([9, 16, 40]) };
  const budget = roll.chance(0.4) ? { maxChainTokens: 10 + roll.below(60) } : {};
  return {
    ...base,
    maxConcurrent: 1 + roll.below(3),
    session: { ...base.session, agentToAgent: { ...limits, ...budget } },
  };
}

async function spawnOne(story: Story, turn: Turn, luck: Dice, name: string): Promise<void> {
  const args = {
    task: `${name} of ${turn.handle.run.runId}`,
    cleanup: luck.of(["keep", "keep", "delete"]),
    ...(luck.chance(0.2) ? { runTimeoutSeconds: 0.001 + luck.below(40) / 1000 } : {}),
    ...(story.seed % ATTACHED === 0 && luck.chance(0.4)
      ? { attachments: [{ name: "a.txt", content: "a" }] }
      : {}),
  };
  const result = await turn.tool("sessions_spawn", args, name);
  if (result.status !== "accepted") return;
  const callId = `${turn.handle.run.runId}:${name}`;
  const child = String(result.childSessionKey);
  const before = story.children.get(callId) ?? child;
  if (before !== child) story.wrong.push(`I4: call ${callId} made ${before} and ${child}`);
  story.children.set(callId, child);
}

/** Plays a turn. Its choices depend only on seed and run, so a later attempt makes the same choices. */
async function act(story: Story, turn: Turn): Promise<string> {
  const { runId } = turn.handle.run;
  const luck = dice(`${story.seed} ${runId}`);
  const isPersons = turn.handle.run.input.provenance === undefined;
  if (luck.chance(0.4)) await pauseIn(story.world, luck.below(40), turn.handle.signal);
  const share = isPersons ? 0.8 : turn.step === "announce" ? 0.08 : 0.35;
  const names = luck.chance(share) ? ["one", "two", "three"].slice(0, 1 + luck.below(3)) : [];
  await Promise.all(names.map((name) => spawnOne(story, turn, luck, name)));
  turn.handle.text(whole("half"));
  if (luck.chance(0.3)) await pauseIn(story.world, luck.below(30), turn.handle.signal);
  if (luck.chance(0.12)) throw new Error("the model failed");
  return luck.chance(0.15) ? luck.of(["ANNOUNCE_SKIP", ""]) : `words of ${runId}`;
}

function playOf(story: Story, life: Process): SpawnPlay {
  return async (turn) => {
    const { signal } = turn.handle;
    if (turn.session.spawnedBy === undefined) return act(story, turn);
    life.inside.add(turn);
    // A run that was stopped holds no slot, although its turn has not come to its end yet.
    const holding = [...life.inside].filter(({ handle }) => !handle.signal.aborted);
    if (holding.length > story.settings.subagents.maxConcurrent && !signal.aborted)
      story.wrong.push("over maxConcurrent");
    try {
      return await act(story, turn);
    } finally {
      life.inside.delete(turn);
    }
  };
}

function channelOf(story: Story): () => DeliveryOutcome {
  return () => {
    const roll = story.dice.below(10);
    if (roll === 0) return { kind: "refused", error: "no" };
    return roll === 1 ? { kind: "retry", error: "later", afterMs: 10 } : { kind: "sent" };
  };
}

/** Runs `work`. If the process crashes, its store also fails, so later errors are ignored. */
async function unlessDead(life: Process, work: () => Promise<void>): Promise<void> {
  try {
    if (!life.dead) await work();
  } catch (error) {
    if (!life.dead) throw error;
  }
}

async function open(story: Story, life: Process, crashAt?: number): Promise<SpawnApp> {
  const crash = { commit: crashAt ?? 0, when: story.dice.of(["before", "after"] as const) };
  const app = await openSpawnApp({
    settings: story.settings,
    dir: story.dir,
    world: worldOf(story.world, life),
    play: playOf(story, life),
    channel: channelOf(story),
    dies: true,
    crash,
  });
  void app.crashed().then(() => {
    life.dead = true;
  });
  await unlessDead(life, async () => {
    const lost = await lostAttachments(app.store.db, story.settings, 0);
    for (const { workspace, dir } of lost) await removeAttachments(workspace, dir);
  });
  return app;
}

async function someSession(story: Story, app: SpawnApp): Promise<Session | undefined> {
  const rows = await app.store.db
    .selectFrom("sessions")
    .select(["key", "spawned_by"])
    .orderBy("key")
    .execute();
  const children = rows.flatMap((row) => (row.spawned_by === null ? [] : [row.key]));
  const key = children.length > 0 && story.dice.chance(0.5) ? story.dice.of(children) : story.dice.of(ROOTS);
  return getSession(app.store.db, key);
}

/** Performs one random action of a person. Refusals for missing or archived sessions are ignored. */
async function doSomething(story: Story, app: SpawnApp): Promise<void> {
  const { dice: roll, settings } = story;
  const session = await someSession(story, app);
  if (session === undefined) return;
  const { key } = session;
  const facts = {
    engine: app.engine,
    settings,
    dropTranscript: async () => {},
  };
  const what = roll.below(20);
  if (what < 10) story.accepted.push((await app.tell(key, "from a person")).runId);
  else if (what < 12) {
    const runs = await app.runs(key);
    if (runs.length > 0) await app.engine.abort({ sessionKey: key, runId: roll.of(runs.slice(-4)).runId });
  } else if (what < 14) await app.engine.abort({ sessionKey: key });
  else if (what < 15) await app.call(key, "subagents", { action: "cancel", sessionKey: "all" });
  else if (what < 17) await resetSession(facts, session);
  else if (what < 18) await deleteSession(facts, session, { deleteTranscript: roll.chance(0.5) });
  else await app.route(key);
}

async function checkChildren(story: Story, db: Db): Promise<void> {
  const rows = await db
    .selectFrom("flows")
    .select(["requester_key", (eb) => eb.fn.countAll<number>().as("n")])
    .where("kind", "=", "spawn")
    .where("state", "=", "open")
    .groupBy("requester_key")
    .execute();
  for (const row of rows) expect(Number(row.n)).toBeLessThanOrEqual(story.settings.subagents.maxChildren);
}

/** Starts a process and runs it until it crashes or stops. */
async function live(story: Story): Promise<void> {
  const { dice: roll, world } = story;
  const life: Process = { inside: new Set(), dead: false };
  const app = await open(story, life, roll.chance(0.7) ? 4 + roll.below(90) : undefined);
  for (let step = 0; step < STEPS_OF_A_LIFE && !life.dead; step += 1) {
    const doing = doSomething(story, app).catch(() => undefined);
    if (roll.chance(0.5)) await inTime(story.world, life, "a person's request", doing);
    await world.advance(roll.below(25));
    await unlessDead(life, () => checkChildren(story, app.store.db));
  }
  if (!life.dead) await inTime(story.world, life, "a stop", app.stop(roll.of([0, 20])));
  life.dead = true;
}

/** Runs the last process until all work is finished, and lets a day pass. */
async function settle(story: Story, life: Process): Promise<SpawnApp> {
  const app = await open(story, life);
  const until = Date.now() + PATIENCE_MS;
  for (let round = 0; Date.now() < until && !(await app.isQuiet()); round += 1) {
    await story.world.advance(round < 300 ? 10 : 1_000);
  }
  const { db } = app.store;
  const left = await db.selectFrom("flows").selectAll().where("state", "=", "open").execute();
  expect(left, "unfinished jobs are left").toEqual([]);
  expect(await app.isQuiet(), "unfinished work is left").toBe(true);
  const dates = () => db.selectFrom("deadlines").select(["kind", "key", "due_at"]).execute();
  const end = story.world.clock.now() + DAY_MS;
  for (let round = 0; round < 400 && story.world.clock.now() < end; round += 1) {
    await story.world.advance((await dates()).length === 0 ? end - story.world.clock.now() : 600_000);
  }
  expect(await dates(), "a stored deadline is left").toEqual([]);
  return app;
}

async function checkSessions(story: Story, app: SpawnApp): Promise<void> {
  const { db } = app.store;
  for (const { key } of await db.selectFrom("sessions").select("key").execute()) {
    const session = await getSession(db, key);
    if (session?.spawn === undefined) continue;
    expect(session.spawn.cleanup, `${key} was to be deleted`).toBe("keep");
    expect(session.archivedAt !== undefined, `${key} is archived`).toBe(
      story.settings.subagents.archiveAfterMinutes > 0,
    );
  }
  const folder = join(story.workspace, ".parley", "attachments");
  const files = () => readdir(folder).catch(() => []);
  // Folders are removed after the commit, while other work runs, so this polls.
  const until = Date.now() + PATIENCE_MS;
  while (Date.now() < until && (await files()).length > 0) await story.world.advance(0);
  expect(await files(), "attachments are left behind").toEqual([]);
}

async function checkStory(story: Story, app: SpawnApp): Promise<number> {
  const { db } = app.store;
  expect(story.wrong).toEqual([]);
  await checkRuns(db, story.accepted);
  await checkTold(db);
  await checkTranscripts(db);
  await checkSessions(story, app);
  // A run that was aborted while it wrote attachments may still be ending.
  const taken = async () => (await app.engine.load()).slots.taken;
  const until = Date.now() + PATIENCE_MS;
  while (Date.now() < until && (await taken()) > 0) await story.world.advance(1);
  expect(await taken(), "all slots are free").toBe(0);
  const jobs = await checkJobs(db);
  const known = await db.selectFrom("flows").select("target_key").where("kind", "=", "spawn").execute();
  const targets = new Set(known.map((row) => row.target_key));
  expect(targets.size, "one job a child").toBe(known.length);
  for (const child of story.children.values()) expect(targets.has(child), `${child} has a job`).toBe(true);
  return jobs;
}

async function storyOf(seed: number): Promise<number> {
  const roll = dice(`spawns ${seed}`);
  const workspace = join(temporaryFolder(), "workspace");
  mkdirSync(workspace);
  const story: Story = {
    seed,
    dir: temporaryFolder(),
    workspace,
    world: fakeWorld({ seed }),
    dice: roll,
    settings: settingsOf(roll, workspace),
    accepted: [],
    children: new Map(),
    wrong: [],
  };
  const life: Process = { inside: new Set(), dead: false };
  const first = await open(story, life);
  await first.store.transaction((tx) => insertSession(tx, sessionRow("agent:main:chat:one")));
  for (const key of ROOTS) if (roll.chance(0.6)) await first.route(key);
  await inTime(story.world, life, "a stop", first.stop(0));
  life.dead = true;
  for (let lives = 1 + roll.below(2); lives > 0; lives -= 1) await live(story);
  const lastLife: Process = { inside: new Set(), dead: false };
  const last = await settle(story, lastLife);
  const jobs = await checkStory(story, last);
  await inTime(story.world, lastLife, "a stop", last.stop(0));
  lastLife.dead = true;
  return jobs;
}

/** Plays the stories of the seeds from 1 to `seeds`. Returns the number of their jobs. */
export async function playStories(seeds: number): Promise<number> {
  let jobs = 0;
  for (let seed = 1; seed <= seeds; seed += 1) {
    try {
      jobs += await storyOf(seed);
    } catch (error) {
      throw new Error(`SEED=${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
  return jobs;
}
