// Crashes before and after every commit between a job's creation and the delivery of its answer. The stored
// rows must suffice to finish the job once.

import { describe, expect, test } from "vitest";
import { listJobs } from "../../../src/features/cron/store.ts";
import { type CrashPoint, temporaryFolder } from "../../kit/engine/engine.ts";
import { type FlowApp, type FlowAppOptions, openFlowApp } from "../../kit/engine/flow-app.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";
import { add, cronKey, turnsOf } from "./kit.ts";

const MAIN = "agent:main:main";
const HOUR = 3_600_000;
const COMMITS_MAX = 60;

/** Every job's run gives the same answer. */
const plays = new Proxy<FlowAppOptions["plays"]>(
  {},
  { get: (_, key) => (String(key).startsWith("cron:") ? () => "The report." : undefined) },
);

async function begin(app: FlowApp): Promise<"told" | "not_told"> {
  try {
    await add(app, { schedule: { kind: "every", everyMs: HOUR }, deliver: { channel: "webchat", to: MAIN } });
    return "told";
  } catch {
    return "not_told";
  }
}

/** Returns true if all work of the first due time is done. */
async function isDone(app: FlowApp): Promise<boolean> {
  const [job] = await listJobs(app.store.db, 1);
  return job !== undefined && (await turnsOf(app, job)).length > 0 && (await app.isQuiet());
}

/** Advances the clock until the work of the first due time is done. */
async function workOff(app: FlowApp, world: FakeWorld): Promise<void> {
  while (!(await isDone(app))) await world.advance(0);
}

async function checkOnce(app: FlowApp): Promise<void> {
  const [job] = await listJobs(app.store.db, 1);
  if (job === undefined) throw new Error("the job is there");
  expect(await turnsOf(app, job)).toEqual(["schedule ok"]);
  expect(await app.runs(cronKey(job.id))).toHaveLength(1);
  expect(await app.texts(cronKey(job.id))).toEqual(["user: tick", "assistant: The report."]);
  expect(await app.texts(MAIN)).toEqual(["assistant: The report."]);
  const rows = await app.store.db.selectFrom("deliveries").select(["state", "text"]).execute();
  expect(rows).toEqual([{ state: "sent", text: "The report." }]);
  expect(job.nextAt).toBe(job.createdAt + 2 * HOUR);
}

async function crashAt(point: CrashPoint): Promise<"crashed" | "too_late"> {
  const dir = temporaryFolder();
  const world = fakeWorld();
  const first = await openFlowApp({ plays, dir, world, crash: point }).catch(() => undefined);
  if (first === undefined) return "crashed";
  const told = await begin(first);
  const outcome = await Promise.race([
    first.crashed().then(() => "crashed" as const),
    world.advance(HOUR).then(async () => {
      await workOff(first, world).catch(() => first.crashed());
      return (await isDone(first).catch(() => false)) ? ("too_late" as const) : ("crashed" as const);
    }),
  ]);
  if (outcome === "too_late") return outcome;
  await first.crashed();
  const later = fakeWorld({ startMs: world.clock.now(), seed: 2 });
  const second = await openFlowApp({ plays, dir, world: later });
  const known = (await listJobs(second.store.db, 1)).length === 1;
  // A job may be lost only if its creation was not confirmed.
  if (told === "told") expect(known).toBe(true);
  if (known) {
    const [job] = await listJobs(second.store.db, 1);
    const ahead = (job?.createdAt ?? 0) + HOUR - later.clock.now();
    if (ahead > 0) await later.advance(ahead);
    await workOff(second, later);
    await checkOnce(second);
  }
  await second.stop(0);
  return "crashed";
}

describe.each(["before", "after"] as const)("a crash %s any commit of a job", (when) => {
  test("I4, TU1: a job's due time is handled once, and its answer is delivered once", async () => {
    let crashes = 0;
    for (let commit = 1; commit < COMMITS_MAX; commit += 1) {
      if ((await crashAt({ commit, when })) === "too_late") break;
      crashes += 1;
    }
    expect(crashes, "the story has this many commits").toBeGreaterThan(5);
    expect(crashes).toBeLessThan(COMMITS_MAX - 1);
  });
});
