// The database restarts under load, other programs hold locks, and processes have wrong clocks: no accepted
// message is lost, and nothing happens twice.

import { sql } from "kysely";
import pg from "pg";
import { expect, test } from "vitest";
import { isEnded } from "../../src/core/shapes/run.ts";
import { StoreProblem } from "../../src/store/problems.ts";
import { LEASE_MS } from "../../src/store/queries/processes.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import type { World } from "../../src/world.ts";
import { type ClusterProcess, openCluster, postgresGround } from "../kit/engine/cluster.ts";
import { cleanup, endOf, makeSessions, quietWorld } from "../kit/engine/engine.ts";
import type { Play } from "../kit/engine/flow-app.ts";
import { checkFlows, checkRuns, checkTold, checkTranscripts } from "../kit/engine/flow-checks.ts";
import { serverUrl } from "../kit/store/postgres.ts";
import { startPostgres } from "../kit/store/postgres-server.ts";
import { until } from "../kit/until.ts";
import { gate, MAIN } from "./cluster-stage.ts";

const KEYS = Array.from({ length: 6 }, (_, at) => `agent:main:chat:room${at}`);
const ROUNDS = 3;
const WORK_BETWEEN = 12;

/**
 * Sends to the next session and waits for its answer, so that waits and flows are open during the failure.
 */
const asks: Play = async (actor) => {
  const at = KEYS.indexOf(actor.handle.run.sessionKey);
  if (actor.step !== "message" || at % 2 === 1) return `answer ${at}`;
  const result = await actor.send(KEYS[at + 1] ?? MAIN, "a question", 30);
  return `was told ${String(result.status)}`;
};

/**
 * Sends repeatedly until the database accepts the message. Every attempt has the same id, so there is only
 * one run.
 */
async function tellForSure(process: ClusterProcess, key: string, runId: string): Promise<void> {
  for (;;) {
    try {
      await process.app.tell(key, "work", { runId });
      return;
    } catch (error) {
      if (!(error instanceof StoreProblem)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

test("I2, I4: if the database is killed and restarted under load, no accepted message is lost", async () => {
  const server = await startPostgres();
  cleanup(() => server.end());
  const cluster = await openCluster(() => postgresGround(server.url));
  const plays = Object.fromEntries(KEYS.map((key) => [key, asks]));
  const choices = { session: { agentToAgent: { maxPingPongTurns: 1, maxHops: 16, maxChainRuns: 200 } } };
  const processes = [await cluster.join({ plays, choices }), await cluster.join({ plays, choices })];
  const [a] = processes;
  if (a === undefined) throw new Error("nobody");
  await makeSessions(a.app.store, ...KEYS);
  const accepted: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const telling = Array.from({ length: WORK_BETWEEN }, async (_, at) => {
      const runId = `round${round}-${at}`;
      const process = processes[at % 2] ?? a;
      await tellForSure(process, KEYS[at % KEYS.length] ?? MAIN, runId);
      accepted.push(runId);
    });
    await (round % 2 === 0 ? server.kill() : server.stop());
    await server.start();
    await Promise.all(telling);
  }
  const quiet = async (): Promise<boolean> => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return a.app.isQuiet().catch(() => false);
  };
  await until(quiet);
  const { db } = a.app.store;
  expect(accepted).toHaveLength(ROUNDS * WORK_BETWEEN);
  await checkRuns(db, accepted);
  await checkFlows(db);
  await checkTold(db);
  await checkTranscripts(db);
  // A short outage of the database is no crash, so each run must succeed, at the first or a later attempt.
  for (const runId of accepted) expect(await getRun(db, runId), runId).toMatchObject({ state: "ok" });
  for (const process of processes) await process.stop();
});

test("if another program holds a lock for too long, a message is delayed but not lost", async () => {
  const ground = await postgresGround();
  const cluster = await openCluster(async () => ground);
  const a = await cluster.join({ plays: {} });
  const address = await a.app.store.db
    .selectNoFrom((eb) => eb.fn<string>("current_schema").as("schema"))
    .executeTakeFirstOrThrow();
  const stranger = new pg.Client({ connectionString: await serverUrl() });
  await stranger.connect();
  cleanup(() => stranger.end());
  await stranger.query(`begin; select * from ${address.schema}.sessions where key = '${MAIN}' for update`);
  const telling = a.app.tell(MAIN, "work", { runId: "held-up" });
  // This lock lasts longer than the lock timeout of a statement, so a statement fails and is retried.
  await stranger.query("select pg_sleep(2.5)");
  await stranger.query("rollback");
  await telling;
  expect(await endOf(a.app.engine, "held-up")).toMatchObject({ state: "ok", attempt: 1 });
  expect(await a.app.texts(MAIN)).toEqual(["user: work", "assistant: echo work"]);
});

/** Returns the world of a process with a wrong clock. */
function worldAt(offsetMs: number): World {
  const world = quietWorld();
  const { clock } = world;
  return {
    ...world,
    clock: {
      now: () => clock.now() + offsetMs,
      monotonic: () => clock.monotonic(),
      at: (atMs, fire, keep) => clock.at(atMs - offsetMs, fire, keep),
      after: (ms, fire, keep) => clock.after(ms, fire, keep),
    },
  };
}

test("processes whose clocks differ by hours use the database's clock for deadlines", async () => {
  const hour = 3_600_000;
  const cluster = await openCluster(() => postgresGround());
  const open = Promise.withResolvers<void>();
  const plays: Record<string, Play> = {
    [MAIN]: async (actor) => {
      const result = await actor.send(KEYS[0] ?? "", "a question", 1.5);
      return String(result.status);
    },
    [KEYS[0] ?? ""]: async ({ handle }) => {
      await Promise.race([
        open.promise,
        new Promise((resolve) => handle.signal.addEventListener("abort", resolve, { once: true })),
      ]);
      return "late";
    },
  };
  const late = await cluster.join({ plays }, worldAt(-2 * hour));
  const early = await cluster.join({ plays }, worldAt(3 * hour));
  await makeSessions(late.app.store, ...KEYS);
  const before = Date.now();
  const asked = await late.app.tell(MAIN, "go");
  expect(Math.abs(asked.acceptedAt - before)).toBeLessThan(60_000);
  // Neither process declared the other one dead. The wait ended by the database's clock, and not at once or
  // after hours.
  expect(await endOf(early.app.engine, asked.runId)).toMatchObject({
    state: "ok",
    reply: "timeout",
    crashes: 0,
  });
  open.resolve();
  const timed = await early.app.tell(KEYS[1] ?? "", "work", { timeoutMs: 30_000 });
  expect(await endOf(late.app.engine, timed.runId)).toMatchObject({ state: "ok", crashes: 0 });
  await late.app.quiet();
  const runs = await late.app.runs(KEYS[0] ?? "");
  expect(runs).not.toEqual([]);
  expect(runs.filter((run) => !isEnded(run.state) || run.crashes > 0)).toEqual([]);
});

test("a process whose connections are all busy still renews its lease and keeps its runs", async () => {
  const cluster = await openCluster(postgresGround);
  const held = gate();
  const plays: Record<string, Play> = {
    [MAIN]: async () => {
      await held.pass();
      return "done";
    },
  };
  const a = await cluster.join({ plays });
  const b = await cluster.join({ plays });
  const run = await a.app.tell(MAIN, "work");
  await held.reached;
  const { db } = a.app.store;
  const beatOf = async (): Promise<number> => {
    const row = await db
      .selectFrom("processes")
      .select("beat_at")
      .where("process_id", "=", a.app.engine.processId)
      .executeTakeFirstOrThrow();
    return Number(row.beat_at);
  };
  // More callers than connections, so later callers wait.
  let over = false;
  const hold = async (): Promise<void> => {
    while (!over) await a.app.store.transaction((tx) => sql`select pg_sleep(0.5)`.execute(tx));
  };
  const holding = Array.from({ length: 80 }, hold);
  const before = await beatOf();
  await until(async () => (await beatOf()) >= before + 1.5 * LEASE_MS);
  over = true;
  await Promise.all(holding);
  held.open();
  expect(await endOf(b.app.engine, run.runId)).toMatchObject({ state: "ok", attempt: 1, crashes: 0 });
});
