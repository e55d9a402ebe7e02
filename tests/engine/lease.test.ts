// A process's right to execute a run, and the decision that another process is dead, while the database and
// its clock have faults.

import { expect, test } from "vitest";
import type { LaneHandle } from "../../src/engine/run/execution.ts";
import { LostLane } from "../../src/engine/run/finish.ts";
import { LEASE_MS } from "../../src/store/queries/processes.ts";
import type { World } from "../../src/world.ts";
import type { ClusterProcess } from "../kit/engine/cluster.ts";
import { makeSessions } from "../kit/engine/engine.ts";
import { counted, ended, link, midway, openStage, runOf } from "../kit/engine/lease-stage.ts";

const MAIN = "agent:main:main";
const OTHER = "agent:main:chat:other";

test("a process without work checks the rows every ten seconds, and at once after a gap in the hints", async () => {
  const { world, cluster, pass, until } = await openStage();
  let commits = 0;
  const a = await cluster.join({ plays: {}, committed: async () => void commits++ }, world);
  await pass(1_000);
  const before = commits;
  await pass(60_000);
  const idle = commits - before;
  expect(idle).toBeGreaterThan(0);
  // A check of the outbox is one commit.
  expect(idle).toBeLessThanOrEqual(7);
  cluster.ground.gap();
  await until(() => commits > before + idle);
  const { runId } = await a.app.tell(MAIN, "work");
  await until(() => ended(a, runId));
});

test("after an outage no process counts as dead until the database has answered for the duration of a lease", async () => {
  const { world, cluster, pass, until } = await openStage();
  const work = midway();
  const plays = { [MAIN]: work.play };
  const [ofA, ofB] = [link(), link()];
  const a = await cluster.join({ plays }, world, ofA.through);
  const b = await cluster.join({ plays }, world, ofB.through);
  const { runId } = await a.app.tell(MAIN, "work");
  await work.began;
  for (const how of ["fail", "hang"] as const) {
    ofA.beats = how;
    ofB.beats = how;
    await pass(2 * LEASE_MS);
    // The other process reaches the database first, and has it alone for several intervals.
    ofB.beats = "pass";
    await pass(LEASE_MS - 500);
    ofA.beats = "pass";
    await pass(LEASE_MS);
  }
  work.goOn();
  await until(() => ended(b, runId));
  expect(await runOf(b, runId)).toMatchObject({ state: "ok", attempt: 1, crashes: 0 });
});

test("if a process's heartbeats no longer arrive, it counts as dead when its lease expires, and stops its runs", async () => {
  const { world, cluster, until } = await openStage();
  const work = midway();
  const ofA = link();
  const a = await cluster.join({ plays: { [MAIN]: work.play } }, world, ofA.through);
  const b = await cluster.join({ plays: { [MAIN]: () => "by b" } }, world);
  const { runId } = await a.app.tell(MAIN, "work");
  const handle = await work.began;
  ofA.beats = "fail";
  const from = world.clock.monotonic();
  await until(() => ended(b, runId));
  const afterMs = world.clock.monotonic() - from;
  expect(afterMs).toBeGreaterThanOrEqual(LEASE_MS - 1_000);
  expect(afterMs).toBeLessThanOrEqual(LEASE_MS + 2_000);
  expect(await runOf(b, runId)).toMatchObject({ reply: "by b", attempt: 2, crashes: 1 });
  ofA.beats = "pass";
  await until(() => handle.signal.aborted);
  work.goOn();
  await makeSessions(a.app.store, OTHER);
  const next = await a.app.tell(OTHER, "again");
  await until(() => ended(b, next.runId));
  expect(await b.app.texts(MAIN)).toEqual(["user: work", "assistant: by b"]);
});

test("no process counts as dead after a jump of the database's clock", async () => {
  const { world, cluster, pass, until } = await openStage();
  let jumpMs = 0;
  const { clock } = world;
  const jumpy: World = { ...world, clock: { ...clock, now: () => clock.now() + jumpMs, at: clock.at } };
  const at: World["clock"]["at"] = (atMs, fire) => clock.at(atMs - jumpMs, fire);
  const own = { ...jumpy, clock: { ...jumpy.clock, at } };
  const work = midway();
  const plays = { [MAIN]: work.play };
  const a = await cluster.join({ plays }, own);
  await cluster.join({ plays }, own);
  const { runId } = await a.app.tell(MAIN, "work", { timeoutMs: 0 });
  await work.began;
  for (const jump of [7_200_000, -3_600_000]) {
    jumpMs = jump;
    await pass(2 * LEASE_MS);
  }
  work.goOn();
  await until(() => ended(a, runId));
  expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1, crashes: 0 });
});

test.each([
  ["a model call", (handle: LaneHandle) => handle.confirm()],
  ["a tool call", (handle: LaneHandle) => handle.duringCall(async () => {})],
  [
    "a write",
    (handle: LaneHandle) =>
      handle.append({
        ...{ role: "toolResult", id: "result", toolCallId: "c", toolName: "t", isError: false },
        ...{ content: [{ type: "text", text: "x" }], timestamp: 1 },
      }),
  ],
] as const)(
  "%s waits until the lease is renewed, if the lease has expired or its heartbeat failed",
  async (_what, act) => {
    for (const how of ["fail", "hang"] as const) {
      const { world, cluster, pass, until } = await openStage();
      let acted = false;
      const work = midway(async (handle) => {
        await act(handle);
        acted = true;
        return "done";
      });
      const ofA = link();
      const a = await cluster.join({ plays: { [MAIN]: work.play } }, world, ofA.through);
      const { runId } = await a.app.tell(MAIN, "work");
      await work.began;
      ofA.beats = how;
      // A failed heartbeat counts at once; a heartbeat without an answer counts when the lease expires.
      await pass(how === "fail" ? 1_200 : LEASE_MS);
      work.goOn();
      await pass(LEASE_MS);
      expect(acted).toBe(false);
      ofA.beats = "pass";
      await until(() => ended(a, runId));
      expect(acted).toBe(true);
      expect(await runOf(a, runId)).toMatchObject({ state: "ok", attempt: 1 });
    }
  },
);

test("if a run is stopped while it waits for its right to execute, it makes no further call", async () => {
  const { world, cluster, pass, until } = await openStage();
  const lost = Promise.withResolvers<unknown>();
  const work = midway(async (handle) => {
    await handle.duringCall(async () => {}).catch(lost.resolve);
    throw new LostLane("over");
  });
  const ofA = link();
  const a = await cluster.join({ plays: { [MAIN]: work.play } }, world, ofA.through);
  const { runId } = await a.app.tell(MAIN, "work");
  await work.began;
  ofA.beats = "fail";
  await pass(1_200);
  work.goOn();
  await pass(500);
  await a.app.engine.abort({ sessionKey: MAIN });
  expect(await lost.promise).toBeInstanceOf(LostLane);
  await until(() => ended(a, runId));
});

/** Starts a run on a process whose claim is committed, but gets its answer only after `answer` is called. */
async function claimWithLateAnswer(a: ClusterProcess) {
  const answer = a.holdNextAnswer();
  const told = a.app.tell(MAIN, "work");
  const runId = async (): Promise<string> => {
    const rows = await a.app.store.db.selectFrom("runs").select("run_id").execute();
    return rows[0]?.run_id ?? "";
  };
  return { answer, told, runId };
}

test("a process that lost its lease before its claim was answered leaves the run to the others", async () => {
  const { world, cluster, pass, until } = await openStage();
  const [ofA, workOfA, work] = [link(), counted("by a"), midway(async () => "by b")];
  const a = await cluster.join({ plays: { [MAIN]: workOfA.play } }, world, ofA.through);
  const b = await cluster.join({ plays: { [MAIN]: work.play } }, world);
  const { answer, told, runId } = await claimWithLateAnswer(a);
  ofA.beats = "fail";
  await until(async () => (await runOf(b, await runId()))?.attempt === 2);
  await work.began;
  ofA.beats = "pass";
  // The process joins again, so its new lease is fresh when the answer arrives.
  await pass(1_000);
  answer();
  await told;
  await pass(1_000);
  expect(workOfA.begun()).toBe(0);
  work.goOn();
  await until(async () => ended(b, await runId()));
  expect(await runOf(b, await runId())).toMatchObject({ reply: "by b", attempt: 2, crashes: 1 });
});
