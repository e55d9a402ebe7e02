// Several processes on one PostgreSQL, with real locks and real time: people write, agents send to each
// other, any process aborts, resets and deletes, and processes die. At the end every accepted run has ended
// once, and each waiting sender got its outcome once. The database decides the interleaving, so a seed gives
// the same choices but not the same sequence.

import { expect, test } from "vitest";
import { dice } from "../kit/dice.ts";
import { type Cluster, type ClusterProcess, openCluster, postgresGround } from "../kit/engine/cluster.ts";
import type { FlowApp } from "../kit/engine/flow-app.ts";
import { checkTalk, checkWaiting } from "../kit/engine/flow-checks.ts";
import { cast, doSomething, KEYS, LIMITS, makeChats, type Talk } from "../kit/engine/random-talk.ts";

const SLOTS = 3;
const STEPS = 40;
const SEEDS = Number(process.env.CLUSTER_SEEDS ?? 3);
const FIRST_SEED = Number(process.env.CLUSTER_FROM ?? 1);
const SETTLING_MS = 60_000;
/** Number of checks without a change, 20 ms apart, before the store counts as quiet. */
const QUIET_LOOKS = 15;

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function join(story: Talk, cluster: Cluster): Promise<ClusterProcess> {
  return cluster.join({ ...cast(story), maxConcurrent: SLOTS });
}

async function settle(story: Talk, app: FlowApp): Promise<void> {
  const until = Date.now() + SETTLING_MS;
  // A process that continues may still send late messages, so the store must be unchanged for a while.
  for (let quiet = 0; quiet < QUIET_LOOKS; quiet = (await app.isQuiet()) ? quiet + 1 : 0) {
    if (Date.now() > until) {
      const left = await app.store.db
        .selectFrom("runs")
        .select(["run_id", "session_key", "state", "kind", "flow_step", "owner", "attempt"])
        .where("state", "in", ["queued", "running", "waiting"])
        .execute();
      expect(left, `SEED=${story.seed}: work is left that nobody does`).toEqual([]);
      const flows = await app.store.db.selectFrom("flows").selectAll().where("state", "=", "open").execute();
      expect(flows, "open flows").toEqual([]);
      const pending = await app.store.db
        .selectFrom("deliveries")
        .selectAll()
        .where("state", "=", "pending")
        .execute();
      expect(pending, "pending deliveries").toEqual([]);
    }
    await pause(20);
  }
}

async function storyOf(seed: number): Promise<void> {
  const story: Talk = {
    ...{ seed, dice: dice(`cluster story ${seed}`), accepted: [], begun: new Map(), pause },
    waitSeconds: [0, 0, 0.01, 0.1, 1, 10],
    told: () => {},
  };
  const cluster = await openCluster(() => postgresGround());
  const processes: ClusterProcess[] = [];
  for (let count = 0; count < 3; count += 1) processes.push(await join(story, cluster));
  const everybody = [...processes];
  const first = processes[0];
  if (first === undefined) throw new Error("nobody");
  await makeChats(first.app.store);
  await first.app.route(...KEYS.filter(() => story.dice.chance(0.5)));
  for (let step = 0; step < STEPS; step += 1) {
    const at = story.dice.below(processes.length);
    const process = processes[at];
    if (process === undefined) continue;
    if (step % 15 === 14) {
      if (story.dice.chance(0.5)) process.die();
      else {
        process.pause();
        setTimeout(() => process.goOn(), 4_000);
      }
      const joined = await join(story, cluster);
      processes[at] = joined;
      everybody.push(joined);
      continue;
    }
    const doing = doSomething(story, process.app).catch(() => undefined);
    if (story.dice.chance(0.3)) await Promise.race([doing, pause(2_000)]);
    await pause(story.dice.below(15));
  }
  const last = processes[0]?.app;
  if (last === undefined) throw new Error("nobody");
  for (const process of everybody) process.goOn();
  await settle(story, last);
  const { db } = last.store;
  await checkWaiting(db, last.engine.now());
  await checkTalk(db, story.accepted, LIMITS);
  expect((await last.engine.load()).slots.taken, "all slots are free").toBe(0);
  for (const [key, begun] of story.begun) {
    // Only the first start counts, and only of runs that no other process ended: an ended run may start late,
    // and a paused process may start a lost run again.
    const rows = await db
      .selectFrom("runs")
      .select("lane_seq")
      .where("session_key", "=", key)
      .where("state", "in", ["ok", "error"])
      .execute();
    const own = new Set(rows.map((row) => row.lane_seq));
    const first = [...new Set(begun)].filter((laneSeq) => own.has(laneSeq));
    expect(first, `I3: turns of ${key}`).toEqual(first.toSorted((x, y) => x - y));
  }
  for (const process of everybody) await process.stop();
}

test("I1-I8: three processes on one PostgreSQL keep the invariants while some of them die or pause", async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    try {
      await storyOf(seed);
    } catch (error) {
      throw new Error(`SEED=${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
});
