// Scheduled jobs and their runs, on every store.

import { describe, expect, test } from "vitest";
import { ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import { type CronJob, TURNS_KEPT } from "../../../src/features/cron/job.ts";
import * as jobs from "../../../src/features/cron/store.ts";
import { endRun, insertRun } from "../../../src/store/queries/runs/runs.ts";
import { removeEnded } from "../../../src/store/queries/sessions/sessions.ts";
import type { Store } from "../../../src/store/sql.ts";
import { sampleRun } from "../../store/samples.ts";

const job = (id: string, more: Partial<CronJob> = {}): CronJob => ({
  id,
  schedule: { kind: "cron", expr: "30 2 * * *", tz: "Europe/Berlin" },
  agentId: "main",
  message: "what is new?",
  enabled: true,
  missed: "once",
  conversation: "keep",
  timeoutMs: 0,
  nextAt: 5_000,
  createdAt: 1,
  updatedAt: 1,
  ...more,
});

export function storeContract(store: () => Store): void {
  describe("scheduled jobs", () => contract(store));
}

function contract(store: () => Store): void {
  const put = (one: CronJob) => store().transaction((tx) => jobs.putJob(tx, one));
  const turn = (jobId: string, more: Partial<jobs.NewTurn> = {}) =>
    store().transaction((tx) => jobs.insertTurn(tx, { jobId, cause: "schedule", firedAt: 10, ...more }));

  test("a scheduled job is returned exactly as it was stored, with all or few fields, and is always replaced as a whole", async () => {
    const whole = job("a", {
      name: "‮ 'name' \\ 😀",
      deliver: { channel: "webchat", to: "agent:main:main", threadId: "7" },
      model: "offline/rehearsal",
      thinking: "high",
      timeoutMs: 60_000,
      missed: "skip",
      conversation: "fresh",
      schedule: { kind: "every", everyMs: 10_000, anchorMs: 253_402_300_799_999 },
    });
    const { nextAt: _, ...paused } = job("a", { enabled: false, schedule: { kind: "at", atMs: 7 } });
    for (const one of [whole, paused, job("a")]) {
      await put(one);
      expect(await jobs.getJob(store().db, "a")).toEqual(one);
    }
    expect(await jobs.countJobs(store().db)).toBe(1);
    expect(await jobs.getJob(store().db, "A")).toBeUndefined();
  });

  test("a job moves to its next due time; if there is none, the job ends", async () => {
    await put(job("a"));
    await store().transaction((tx) => jobs.moveJob(tx, "a", 9_000));
    expect(await store().transaction((tx) => jobs.holdJob(tx, "a"))).toMatchObject({
      nextAt: 9_000,
      enabled: true,
    });
    await store().transaction((tx) => jobs.moveJob(tx, "a", undefined));
    const over = await jobs.getJob(store().db, "a");
    expect([over?.enabled, over?.nextAt]).toEqual([false, undefined]);
  });

  test("the jobs of a session's agent, but not a person's, are listed, counted by agent and deleted with their runs", async () => {
    await put(job("person"));
    await put(job("b", { sessionKey: "agent:main:main", callId: "call", createdAt: 2 }));
    await put(job("a", { sessionKey: "agent:main:main", callId: "first" }));
    await put(job("other", { sessionKey: "agent:main:notes", callId: "third" }));
    await put(job("planned", { sessionKey: "agent:main:main" }));
    await turn("a");
    const own = await jobs.jobsOfSession(store().db, "agent:main:main");
    expect(own.map(({ id, callId }) => [id, callId])).toEqual([
      ["a", "first"],
      ["b", "call"],
    ]);
    expect(await jobs.countJobsMadeBy(store().db, "main")).toBe(3);
    expect(await jobs.countJobsMadeBy(store().db, "research")).toBe(0);
    await store().transaction((tx) => removeEnded(tx, "agent:main:main"));
    expect((await jobs.listJobs(store().db, 5)).map(({ id }) => id)).toEqual(["other", "person", "planned"]);
    expect(await jobs.listTurns(store().db, "a", 5)).toEqual([]);
  });

  test("jobs are listed in the order of creation", async () => {
    for (const id of ["c", "a", "b"]) await put(job(id, { createdAt: id === "b" ? 1 : 2 }));
    const ids = async (limit: number) => (await jobs.listJobs(store().db, limit)).map(({ id }) => id);
    expect(await ids(5)).toEqual(["b", "a", "c"]);
    expect(await ids(2)).toEqual(["b", "a"]);
  });

  test("the runs of a job are listed with their state, newest first; a skipped run has the reason", async () => {
    await put(job("a"));
    await put(job("b"));
    await store().transaction((tx) => insertRun(tx, sampleRun({ runId: "r1", state: "queued" })));
    await turn("a", { dueAt: 5, runId: "r1" });
    expect(await jobs.unfinishedRunOf(store().db, "a")).toBe("r1");
    await store().transaction((tx) =>
      endRun(tx, "r1", {
        end: { state: "error", endedAt: 40, code: "run_failed", error: "it broke" },
        usage: { ...ZERO_USAGE, totalTokens: 12 },
      }),
    );
    await turn("a", { dueAt: 6, code: "missed", error: "nobody was there" });
    await turn("b", { cause: "manual", runId: "gone" });
    expect(await jobs.listTurns(store().db, "a", 10)).toMatchObject([
      { dueAt: 6, code: "missed", error: "nobody was there" },
      {
        dueAt: 5,
        runId: "r1",
        state: "error",
        code: "run_failed",
        error: "it broke",
        endedAt: 40,
        totalTokens: 12,
      },
    ]);
    expect(await jobs.unfinishedRunOf(store().db, "a")).toBeUndefined();
    const last = await jobs.lastTurns(store().db, ["a", "b", "c"]);
    expect([...last.entries()].map(([id, one]) => [id, one.code, one.cause])).toEqual(
      expect.arrayContaining([
        ["a", "missed", "schedule"],
        ["b", undefined, "manual"],
      ]),
    );
    expect(last.size).toBe(2);
  });

  test("CJ2: the store keeps a limited number of runs for each job, and does not delete runs of other jobs", async () => {
    await put(job("a"));
    await put(job("b"));
    await turn("b", { firedAt: 1 });
    for (let fired = 0; fired < TURNS_KEPT + 5; fired += 1) await turn("a", { firedAt: fired });
    const kept = await jobs.listTurns(store().db, "a", 1_000);
    expect([kept.length, kept[0]?.firedAt, kept.at(-1)?.firedAt]).toEqual([TURNS_KEPT, TURNS_KEPT + 4, 5]);
    expect(await jobs.listTurns(store().db, "b", 10)).toHaveLength(1);
    await store().transaction((tx) => jobs.deleteJob(tx, "a"));
    expect(await jobs.listTurns(store().db, "a", 10)).toEqual([]);
    expect(await jobs.listTurns(store().db, "b", 10)).toHaveLength(1);
  });
}
