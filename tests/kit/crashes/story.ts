// A crash test: clients put load on several gateway processes. The processes are killed with SIGKILL or
// paused at random times, even while they start. Then the clients stop, all work ends, the processes stop as
// planned, and all checks run. The load continues across all kills. The seed determines the choices, but not
// the exact moments of the kills.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect } from "vitest";
import type { GatewayClient } from "../../../src/contract/client/node.ts";
import type { Db } from "../../../src/store/sql.ts";
import { openJsonlCopies } from "../../../src/store/sqlite/jsonl-copies.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { realWorld } from "../../../src/world.ts";
import { type Dice, dice } from "../dice.ts";
import { type ModelServer, startModelServer } from "../model-server/server.ts";
import { afterLoss, type FileSet, lossOf, readFiles, readWal, writeFiles } from "../power-loss/cut.ts";
import { Fleet } from "../process/fleet.ts";
import type { FreshStore, Ground } from "../process/grounds.ts";
import { PATIENCE_MS } from "../until.ts";
import { type CrashCounts, checkCopies, checkStory } from "./checks.ts";
import { type CrashModel, openCrashModel } from "./model.ts";
import { Talker, type Told } from "./talker.ts";

const TALKERS = 12;
/** Maximum time from the start of a round to the kill. */
const ROUND_MAX_MS = 1_500;
const START_MAX_MS = 500;
const PAUSE_MAX_MS = 1_500;
const DOWN_MAX_MS = 200;
const ANSWER_MAX_MS = 10_000;
/** Maximum time until the last requests and their runs have ended. */

const { log: SILENT } = realWorld({ level: "silent" });

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface StoryOptions {
  readonly seed: string;
  readonly rounds: number;
  readonly ground: Ground;
  /** Number of processes. Default: the maximum that the `ground` allows. */
  readonly processes?: number;
  /**
   * Duration of the pause of a process in the first round. If absent, the pause is random, and may be
   * missing.
   */
  readonly pauseMs?: number;
  /** Called with one line about each round. */
  readonly report?: (line: string) => void;
}

export interface StoryCounts extends CrashCounts {
  readonly kills: number;
  readonly pauses: number;
  readonly accepted: number;
  readonly repeated: number;
  /** Number of simulated power losses. After each one the store was opened and checked. */
  readonly powerLosses: number;
}

interface Story {
  readonly options: StoryOptions;
  readonly luck: Dice;
  readonly root: string;
  readonly fleet: Fleet;
  readonly server: ModelServer;
  readonly model: CrashModel;
  readonly store: FreshStore;
  readonly told: Told;
  readonly effectsFile: string;
  readonly counts: { kills: number; pauses: number; powerLosses: number };
}

const AGENTS = ["main", "alpha", "beta"];
/** Each command of this agent needs an approval. */
const ASKING = "beta";

function configOf(server: ModelServer, root: string, store: Record<string, unknown>, life: string): object {
  // The header `x-life` tells the model which process is calling, and which start of it.
  const provider = (api: "openai-completions" | "anthropic-messages"): object => {
    const { id: _, headers, ...rest } = server.provider(api);
    return { ...rest, headers: { ...headers, "x-life": life } };
  };
  const workspace = (id: string): string => join(root, "workspace", id);
  return {
    store,
    models: { providers: { one: provider("openai-completions"), two: provider("anthropic-messages") } },
    agents: {
      defaults: {
        model: "one/test-model",
        maxConcurrent: 12,
        subagents: { maxSpawnDepth: 2, maxConcurrent: 6, archiveAfterMinutes: 0 },
      },
      list: AGENTS.map((id, at) => ({
        id,
        default: at === 0,
        workspace: workspace(id),
        ...(id === ASKING ? { model: "two/test-model", tools: { exec: { approval: "always" } } } : {}),
      })),
    },
    tools: {
      sessions: { visibility: "all" },
      agentToAgent: { enabled: true, allow: [] },
      exec: { approval: "never" },
    },
    session: { agentToAgent: { maxPingPongTurns: 2 } },
  };
}

async function openStory(options: StoryOptions): Promise<Story> {
  const { seed, ground } = options;
  const root = mkdtempSync(join(tmpdir(), "parley-crashes-"));
  mkdirSync(join(root, "workspace"));
  const effectsFile = join(root, "effects.log");
  const told: Told = {
    sessions: AGENTS.map((id) => `agent:${id}:main`),
    deleted: new Set(),
    accepted: new Map(),
    problems: [],
    refusals: new Map(),
    repeats: { count: 0 },
    answers: { count: 0 },
    decided: { allow: new Set(), deny: new Set() },
  };
  let model: CrashModel | undefined;
  const server = await startModelServer((request) => {
    // Frees memory. Each request was checked when it arrived.
    server.requests.length = 0;
    return model?.answer(request) ?? "not ready";
  });
  const store = await ground.fresh();
  const fleet = await Fleet.open({
    root,
    processes: options.processes ?? ground.processes,
    config: (life) => configOf(server, root, store.config, life) as Record<string, unknown>,
  });
  model = openCrashModel({
    seed,
    effectsFile,
    sessions: told.sessions,
    isBroken: (life) => fleet.isBroken(life),
  });
  const counts = { kills: 0, pauses: 0, powerLosses: 0 };
  return {
    options,
    luck: dice(`${seed} rounds`),
    root,
    fleet,
    server,
    model,
    store,
    told,
    effectsFile,
    counts,
  };
}

/** Writes a file set into a new folder and opens it as a store. */
async function opened<T>(
  root: string,
  files: FileSet,
  look: (db: Db, dir: string) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(join(root, "loss-"));
  writeFiles(dir, files);
  const store = await openSqlite({ dir, durability: "full", log: SILENT });
  try {
    return await look(store.db, dir);
  } finally {
    await store.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * Simulates a power loss at the time of the kill. Checks that the store still has everything that was
 * accepted before.
 */
async function surviveLoss(story: Story, from: string, accepted: readonly string[]): Promise<void> {
  const { luck, root, counts } = story;
  const files = readFiles(from);
  // A client may already know of the last commit, so everything up to it must survive.
  const wal = files.wal === undefined ? undefined : readWal(files.wal);
  const synced = new Map(wal === undefined ? [] : [[wal.salt, wal.committed]]);
  const left = afterLoss(files, lossOf(files, synced), luck);
  await opened(root, left, async (db, dir) => {
    const check = new DatabaseSync(join(dir, "parley.sqlite"), { readOnly: true });
    expect(check.prepare("pragma integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    check.close();
    const kept = new Set((await db.selectFrom("runs").select("run_id").execute()).map((row) => row.run_id));
    for (const runId of accepted) expect(kept.has(runId), `I2: a loss of power took ${runId}`).toBe(true);
    const jsonlCopies = openJsonlCopies({ dir, log: SILENT, db });
    await jsonlCopies.flush();
    await jsonlCopies.flush();
    await checkCopies(db, dir);
  });
  counts.powerLosses += 1;
}

/** Kills one or several processes and starts them again. Returns a description for the report. */
async function killSome(story: Story): Promise<string> {
  const { fleet, luck, counts, store, told } = story;
  const all = Array.from({ length: fleet.size }, (_, at) => at);
  const first = luck.of(all);
  const chosen = all.filter((at) => at === first || luck.chance(0.2));
  await Promise.all(chosen.map((at) => fleet.kill(at)));
  counts.kills += chosen.length;
  // Must be read before the kill, because later answers come from another process.
  const accepted = [...told.accepted.keys()];
  const dir = store.filesDir?.(fleet);
  if (dir !== undefined && process.platform === "linux") await surviveLoss(story, dir, accepted);
  else await sleep(luck.below(DOWN_MAX_MS));
  const words = [`killed ${chosen.join(" and ")}`];
  for (const at of chosen) {
    if (luck.chance(0.2)) {
      const starting = fleet.start(at);
      await sleep(luck.below(START_MAX_MS));
      await fleet.kill(at);
      await starting;
      counts.kills += 1;
      words.push(`${at} again while it started`);
    }
  }
  await Promise.all(chosen.map((at) => fleet.start(at)));
  return words.join(", ");
}

async function pauseOne(story: Story, fixedMs: number | undefined): Promise<string> {
  const { fleet, luck, counts } = story;
  const at = luck.of(fleet.up());
  // The pause is longer than a lease. Other processes take over the work, and the paused process continues
  // without its lease.
  const pausedMs = fixedMs ?? luck.below(fleet.size > 1 ? 4 * PAUSE_MAX_MS : PAUSE_MAX_MS);
  fleet.pause(at);
  await sleep(pausedMs);
  fleet.resume(at);
  counts.pauses += 1;
  return `paused ${at} for ${pausedMs} ms`;
}

/** Waits until the process has answered a request, because a kill before that would test nothing. */
async function untilAnswered({ told }: Story): Promise<void> {
  const before = told.answers.count;
  for (let waitedMs = 0; told.answers.count === before && waitedMs < ANSWER_MAX_MS; waitedMs += 10)
    await sleep(10);
}

async function playRounds(story: Story): Promise<void> {
  const { options, luck, told, model } = story;
  for (let round = 1; round <= options.rounds; round += 1) {
    const afterMs = luck.below(ROUND_MAX_MS);
    await untilAnswered(story);
    await sleep(afterMs);
    const fixedMs = round === 1 ? options.pauseMs : undefined;
    const pauses = luck.chance(0.15) || fixedMs !== undefined;
    const paused = pauses ? `${await pauseOne(story, fixedMs)}, ` : "";
    const killed = await killSome(story);
    const problems = told.problems.length + model.problems.length;
    options.report?.(
      `round ${round}: after ${afterMs} ms ${paused}${killed}; ${told.accepted.size} accepted, ` +
        `${model.calls.length} model calls, ${problems} problems`,
    );
    if (problems > 0) return;
  }
}

/** Records the ends of runs, and reports an end that arrives twice. */
async function hearEnds(story: Story): Promise<GatewayClient[]> {
  const { fleet, told } = story;
  return Promise.all(
    Array.from({ length: fleet.size }, async (_, at) => {
      const client = await fleet.connect(at);
      const heard = new Set<string>();
      client.on("chat", ({ runId, state, stopReason }) => {
        if (state === "delta" || stopReason === "injected" || stopReason === "delivered") return;
        if (heard.has(runId)) told.problems.push(`I4: the end of ${runId} was told twice`);
        heard.add(runId);
      });
      return client;
    }),
  );
}

/** Waits until all runs and deliveries have ended. */
async function untilQuiet(story: Story): Promise<void> {
  const client = await story.fleet.connect(0);
  const until = Date.now() + PATIENCE_MS;
  try {
    for (;;) {
      const { lanes, deliveries } = await client.request("status");
      if (lanes === undefined || deliveries === undefined) throw new Error("the token covers too little");
      const left = lanes.running + lanes.waiting + lanes.queued + deliveries.pending;
      if (left === 0) return;
      if (Date.now() > until) {
        throw new Error(`I2: work is left that nobody does: ${JSON.stringify({ lanes, deliveries })}`);
      }
      await sleep(50);
    }
  } finally {
    client.close();
  }
}

async function inTime(what: string, work: Promise<unknown>): Promise<void> {
  const late = sleep(PATIENCE_MS).then(() => Promise.reject(new Error(`${what} does not come to an end`)));
  late.catch(() => undefined);
  await Promise.race([work, late]);
}

async function play(story: Story): Promise<StoryCounts> {
  const { options, fleet, told, model, store, effectsFile, counts } = story;
  await fleet.startAll();
  expect(fleet.up().length, fleet.deaths.join("\n")).toBe(fleet.size);
  const ears = await hearEnds(story);
  const talkers = Array.from({ length: TALKERS }, (_, at) => {
    const name = `talker-${at}`;
    const own = dice(`${options.seed} ${name}`);
    return new Talker({ name, fleet, luck: own, told, steadfast: at % 3 === 0 });
  });
  const owner = new Talker({
    name: "owner",
    fleet,
    luck: dice(`${options.seed} owner`),
    told,
    steadfast: true,
  });
  const deciding = owner.decide();
  const talking = Promise.all(talkers.map((talker) => talker.talk()));
  await playRounds(story);
  for (const talker of talkers) talker.stop();
  await inTime("the talk of the clients", talking);
  // On a slow machine, the talk may have brought no command that needs an approval.
  await talkers[0]?.command(`agent:${ASKING}:main`);
  for (const talker of talkers) talker.close();
  if (told.problems.length === 0) await untilQuiet(story);
  owner.stop();
  await inTime("the last answer of the owner", deciding);
  owner.close();
  for (const client of ears) client.close();
  await model.settled();
  for (let at = 0; at < fleet.size; at += 1) expect(await fleet.stop(at), "a planned stop").toBe(0);
  expect(fleet.deaths, "processes that ended by themselves").toEqual([]);
  expect(fleet.errors(), "errors in the log").toEqual([]);
  const opened = await store.open(fleet);
  try {
    const { db } = opened;
    const copiesDir = store.filesDir?.(fleet);
    const isBroken = (life: string): boolean => fleet.isBroken(life);
    const { skewMs } = options.ground;
    const checked = await checkStory({
      db,
      told,
      model,
      effectsFile,
      copiesDir,
      skewMs,
      asking: ASKING,
      isBroken,
    });
    return { ...checked, ...counts, accepted: told.accepted.size, repeated: told.repeats.count };
  } finally {
    await opened.close();
  }
}

/** Runs one crash test, from an empty store to the checks. A failure names its seed. */
export async function crashStory(options: StoryOptions): Promise<StoryCounts> {
  const story = await openStory(options);
  try {
    return await play(story);
  } catch (error) {
    const about = `SEED=${options.seed}, ${options.ground.name}`;
    throw new Error(`${about}: ${(error as Error).message}`, { cause: error });
  } finally {
    await story.fleet.end();
    await story.server.close();
    await story.store.remove();
    if (process.env.PARLEY_KEEP === undefined) rmSync(story.root, { recursive: true, force: true });
    else console.log(`kept: ${story.root}`);
  }
}
