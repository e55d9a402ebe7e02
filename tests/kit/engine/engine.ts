// The real engine with a real store in its own folder, a scripted executor, and crashes at chosen commits.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { optional } from "../../../src/core/optional.ts";
import type { AssistantMessage } from "../../../src/core/shapes/message.ts";
import { ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import { isEnded, type Run } from "../../../src/core/shapes/run.ts";
import type { Session } from "../../../src/core/shapes/session.ts";
import { Engine, type EngineParts, type EngineSettings } from "../../../src/engine/engine.ts";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import type { EndFacts, Successors } from "../../../src/engine/run/finish.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { getSession, insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store, Tx } from "../../../src/store/sql.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { realWorld, type World } from "../../../src/world.ts";
import { sessionRow as blankSession } from "../../core/rows.ts";
import { cleanUp, cleanup, GROUND, temporaryFolder } from "../cleanup.ts";
import { type TestSchema, takeSchema } from "../store/postgres.ts";
import { PATIENCE_MS } from "../until.ts";
import { NO_SUCCESSORS } from "./no-successors.ts";

export { cleanUp, cleanup, temporaryFolder };

/** Returns a world with the real clock and ids, and without log output. */
export function quietWorld(): World {
  return realWorld({ level: "silent", sync: true });
}

export class Crash extends Error {}

/**
 * The kind of crash: before a commit (nothing is written), or after it (written, but without an answer).
 * `lost`: the process survives, but it gets no answer to the commit.
 */
export interface CrashPoint {
  readonly commit: number;
  readonly when: "before" | "after" | "lost";
}

/** Resolves with true if the planned crash happens before the app has finished its work. */
export async function diesAtWork(app: {
  crashed(): Promise<void>;
  quiet(): Promise<void>;
}): Promise<boolean> {
  const isDone = app.quiet().then(
    () => true,
    () => false,
  );
  if (await Promise.race([app.crashed().then(() => false), isDone])) return false;
  await app.crashed();
  return true;
}

/**
 * Repeats a test with a crash at each of its commits in turn, beginning with the third. Returns the number of
 * crashes.
 */
export async function crashAtEach(
  when: CrashPoint["when"],
  commitsMax: number,
  /** Returns false if the test ended before that commit. */
  tell: (point: CrashPoint) => Promise<boolean>,
): Promise<number> {
  for (let commit = 3; commit < commitsMax; commit += 1) {
    if (!(await tell({ commit, when }))) return commit - 3;
  }
  throw new Error(`the story has more than ${commitsMax} commits`);
}

export interface CrashingStore {
  readonly store: Store;
  readonly crashed: Promise<void>;
  commits(): number;
  hasCrashed(): boolean;
}

/** Wraps a store so that its process seems to die at a commit: afterwards nothing is written. */
export function crashingStore(store: Store, point: CrashPoint): CrashingStore {
  let commits = 0;
  let dead = false;
  const crashed = Promise.withResolvers<void>();
  const die = (): never => {
    dead = true;
    crashed.resolve();
    throw new Crash(`crash ${point.when} commit ${point.commit}`);
  };
  return {
    crashed: crashed.promise,
    commits: () => commits,
    hasCrashed: () => dead,
    store: {
      ...store,
      async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
        if (dead) throw new Crash("the process is dead");
        let number = 0;
        const value = await store.transaction(async (tx) => {
          // Transactions run one after the other, so counting them gives the number of the commit.
          if (dead) throw new Crash("the process is dead");
          number = commits + 1;
          if (number === point.commit && point.when === "before") die();
          const result = await work(tx);
          commits = number;
          return result;
        });
        if (number === point.commit && point.when === "after") die();
        if (number === point.commit && point.when === "lost") {
          throw new StoreProblem("unreachable", "store", { detail: "connection lost", inDoubt: true });
        }
        return value;
      },
    },
  };
}

export const LIMITS: EngineSettings = { queueMax: 200, maxHops: 16, maxChainRuns: 200, maxConcurrent: 8 };

export interface TestEngineOptions {
  readonly dir?: string;
  readonly execute: (handle: LaneHandle) => Promise<EndFacts>;
  readonly successors?: Successors;
  readonly settings?: Partial<EngineSettings>;
  readonly world?: World;
  readonly start?: boolean;
  /** The kind of store. Default: the kind that the environment names. */
  readonly on?: Store["kind"];
  /** Wraps the store, for example to make commits fail. */
  readonly wrapStore?: (disk: Store) => Store;
  readonly deadlineHandlers?: EngineParts["deadlineHandlers"];
}

export interface TestEngine {
  readonly engine: Engine;
  readonly store: Store;
  readonly dir: string;
}

/**
 * Opens the store of a folder. Opening it again gives the same data. With `PARLEY_TEST_STORE=postgres` the
 * store is a PostgreSQL schema, so that all tests can run on that database, too.
 */
export async function openStore(dir: string, world: World = quietWorld()): Promise<Store> {
  return openStoreOn(process.env.PARLEY_TEST_STORE === "postgres" ? "postgres" : "sqlite", dir, world);
}

/** Opens a store of this kind in a folder, regardless of the environment. */
export async function openStoreOn(
  kind: Store["kind"],
  dir: string,
  world: World = quietWorld(),
): Promise<Store> {
  const store = await (kind === "postgres" ? openPostgresFor(dir, world) : openEmbedded(dir, world));
  cleanup(() => store.close());
  return store;
}

let emptyFile: Promise<Buffer> | undefined;

/**
 * Makes the file of an empty store once for each test process, because creating the tables takes most of the
 * first start.
 */
async function makeEmptyFile(): Promise<Buffer> {
  const dir = mkdtempSync(join(GROUND, "parley-empty-"));
  try {
    await (await openSqlite({ dir, durability: "normal", log: quietWorld().log })).close();
    return readFileSync(join(dir, STORE_FILE));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Copies the file of an empty store into a folder that is missing or empty. */
export async function putEmptyStore(dir: string): Promise<void> {
  if (existsSync(dir) && readdirSync(dir).length > 0) return;
  emptyFile ??= makeEmptyFile();
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  writeFileSync(join(dir, STORE_FILE), await emptyFile, { mode: 0o600 });
}

/** Opens the embedded store in a folder. The caller closes it. */
export async function openEmbedded(dir: string, world: World = quietWorld()): Promise<Store> {
  await putEmptyStore(dir);
  return openSqlite({ dir, durability: "normal", log: world.log });
}

/**
 * The PostgreSQL schema of each folder of the running test, so that a folder that is opened again has the
 * same data.
 */
const folderSchemas = new Map<string, Promise<TestSchema>>();

/** Opens the PostgreSQL store for one process. One process needs no leases, so its clock may stand still. */
async function openPostgresFor(dir: string, world: World): Promise<Store> {
  const schema = folderSchemas.get(dir) ?? takeSchema();
  if (!folderSchemas.has(dir)) {
    folderSchemas.set(dir, schema);
    cleanup(async () => {
      folderSchemas.delete(dir);
      await (await schema).give();
    });
  }
  const { url } = await schema;
  const { shared: _others, ...store } = await openPostgres({
    url,
    world: { ...world, clock: quietWorld().clock },
  });
  return store;
}

export async function openTestEngine(options: TestEngineOptions): Promise<TestEngine> {
  const world = options.world ?? quietWorld();
  const dir = options.dir ?? temporaryFolder();
  const disk = await (options.on === undefined ? openStore(dir, world) : openStoreOn(options.on, dir, world));
  const store = options.wrapStore?.(disk) ?? disk;
  const engine = new Engine({
    store,
    world,
    settings: { ...LIMITS, ...options.settings },
    successors: options.successors ?? NO_SUCCESSORS,
    executor: { execute: options.execute },
    ...optional({ deadlineHandlers: options.deadlineHandlers }),
  });
  if (options.start !== false) await engine.start();
  cleanup(() => engine.stop(0));
  return { engine, store, dir };
}

/** Returns the row of a session of the agent `main`. The key determines its id. */
export function sessionRow(key: string, more: Partial<Session> = {}): Session {
  return blankSession(key, { sessionId: `id-of-${key}`, agentId: "main", ...more });
}

/** Creates the missing sessions. */
export async function makeSessions(store: Store, ...keys: string[]): Promise<void> {
  await store.transaction(async (tx) => {
    for (const key of keys)
      if ((await getSession(tx, key)) === undefined) await insertSession(tx, sessionRow(key));
  });
}

/** Returns an assistant message in the form in which a model returns it. */
export function assistantText(id: string, text: string): AssistantMessage {
  return {
    id,
    role: "assistant",
    content: [{ type: "text", text }],
    timestamp: 1,
    api: "test",
    provider: "test",
    model: "scripted",
    usage: { ...ZERO_USAGE, input: 3, output: 2, totalTokens: 5 },
    stopReason: "stop",
  };
}

/** Waits for the end of a run and returns it. Fails the test if the run has not ended within `withinMs`. */
export async function endOf(engine: Engine, runId: string, withinMs = PATIENCE_MS): Promise<Run> {
  const run = await engine.waitForRun(runId, engine.now() + withinMs);
  if (run === undefined || !isEnded(run.state)) throw new Error(`run ${runId} is ${run?.state ?? "unknown"}`);
  return run;
}

export async function runRow(store: Store, runId: string): Promise<Run> {
  const run = await getRun(store.db, runId);
  if (run === undefined) throw new Error(`no run ${runId}`);
  return run;
}
