// Checks the rows of a store after all work has ended.

import { expect } from "vitest";
import { isCompaction, textOf, toolCallsOf } from "../../../src/core/shapes/message.ts";
import { isEnded, type Run } from "../../../src/core/shapes/run.ts";
import { getFlow } from "../../../src/store/queries/chains/flows.ts";
import { listRuns } from "../../../src/store/queries/runs/runs.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { readContext } from "../../../src/store/queries/transcripts/transcripts.ts";
import type { Db } from "../../../src/store/sql.ts";

async function allRuns(db: Db): Promise<Run[]> {
  const lanes = await db.selectFrom("runs").select("session_key").distinct().execute();
  const runs = await Promise.all(
    lanes.map((lane) => listRuns(db, { sessionKey: lane.session_key, limit: 10_000 })),
  );
  return runs.flat();
}

/** I2: checks that every accepted run has ended. I4: checks that no run is counted twice. */
export async function checkRuns(db: Db, accepted: readonly string[]): Promise<void> {
  const runs = await allRuns(db);
  for (const run of runs) expect(isEnded(run.state), `I2: ${run.runId} is ${run.state}`).toBe(true);
  const known = new Set(runs.map((run) => run.runId));
  for (const runId of accepted) expect(known.has(runId), `I2: ${runId} was accepted and is gone`).toBe(true);
  const paid = await db.selectFrom("ledger").select("run_id").execute();
  expect(new Set(paid.map((row) => row.run_id)).size, "I4: usage is counted once").toBe(paid.length);
}

/**
 * I4: checks that every step of a conversation happened once, that turns have no gap, and that every flow is
 * closed.
 */
export async function checkFlows(db: Db): Promise<void> {
  const flows = await db.selectFrom("flows").selectAll().where("kind", "=", "send").execute();
  const byFlow = Map.groupBy(await allRuns(db), (run) => run.flow?.flowId ?? "");
  for (const flow of flows) {
    expect(flow.state, `flow ${flow.flow_id}`).toBe("ended");
    const steps = (byFlow.get(flow.flow_id) ?? []).map((run) => run.flow);
    const turns = steps.filter((step) => step?.step !== "announce").map((step) => step?.turn ?? 0);
    turns.sort((x, y) => x - y);
    expect(turns, `I4: turns of ${flow.flow_id}`).toEqual(turns.map((_, at) => at + 1));
    expect(turns.length).toBeLessThanOrEqual(flow.turns_max + 1);
    expect(steps.filter((step) => step?.step === "announce").length).toBeLessThanOrEqual(1);
  }
}

const isTold = (run: Run, from: string): boolean => {
  const { provenance } = run.input;
  return provenance?.kind === "inter_session" && provenance.sourceSessionKey === from;
};

/**
 * Checks that each job ended once: its result was appended, woke the requester, was posted or was stored, or
 * the job was silent or cancelled.
 */
export async function checkJobs(db: Db): Promise<number> {
  const byLane = Map.groupBy(await allRuns(db), (run) => run.sessionKey);
  const deliveries = await db.selectFrom("deliveries").selectAll().execute();
  const jobs = await db.selectFrom("flows").selectAll().where("kind", "=", "spawn").execute();
  for (const job of jobs) {
    expect(job.state, `job of ${job.target_key}`).toBe("ended");
    const own = await db.selectFrom("runs").select("run_id").where("flow_id", "=", job.flow_id).execute();
    const ownIds = own.map((row) => row.run_id);
    // Only runs with the child as their source bring its result. If the requester is itself a sub-agent, its
    // first run and its announce turn have its own requester as their source.
    const told = (byLane.get(job.requester_key) ?? []).filter((run) => isTold(run, job.target_key));
    const posted = deliveries.filter((row) => row.run_id !== null && ownIds.includes(row.run_id));
    // The text of an announcement is blanked with its session. Then only its session tells it from the texts
    // about jobs of the child.
    const blank = posted.filter(({ kind, text }) => kind === "announce" && text === "");
    const mine = [
      ...posted.filter((row) => row.text.includes(`session ${job.target_key}`)),
      ...blank.filter((row) => row.session_key === job.requester_key),
    ];
    // A stop replaces a wake that has not started by an append.
    const wasStopped = (run: Run): boolean => run.startedAt === undefined && run.code === "run_aborted";
    const wakes = told.filter((run) => run.kind === "turn" && !wasStopped(run));
    const appends = told.filter((run) => run.kind === "append");
    const about = `${job.target_key} (${job.end_reason}): ${wakes.length} ${appends.length} ${mine.length}`;
    if (job.end_reason !== "announced") {
      expect(["cancelled", "silent"]).toContain(job.end_reason);
      expect([...told, ...mine], about).toEqual([]);
    } else if (wakes.length > 0) {
      expect([wakes.length, appends.length, mine.length], about).toEqual([1, 0, 0]);
    } else {
      expect(appends.length, about).toBeLessThanOrEqual(1);
      expect(mine.length, about).toBeLessThanOrEqual(1);
      expect(appends.length + mine.length + blank.length, about).toBeGreaterThan(0);
    }
  }
  return jobs.length;
}

/** I4, I5: checks that a run has at most one announcement, and that every delivery has ended. */
export async function checkDeliveries(db: Db): Promise<void> {
  const rows = await db.selectFrom("deliveries").selectAll().execute();
  for (const row of rows) {
    expect(row.state, `delivery ${row.id}`).not.toBe("pending");
    expect(row.attempt_open).toBe(0);
  }
  const runIds = rows.flatMap((row) => (row.run_id === null ? [] : [row.run_id]));
  expect(new Set(runIds).size, "I4: one delivery of an announce run").toBe(runIds.length);
}

/**
 * Checks that no wait is open, and that each outcome reached its sender once: through the wait, a reply turn,
 * or a notice.
 */
export async function checkTold(db: Db): Promise<void> {
  const waits = await db.selectFrom("waits").selectAll().execute();
  for (const wait of waits) expect(wait.state, `wait ${wait.call_id}`).not.toBe("open");
  const answered = new Set(waits.filter((w) => w.state === "answered").map((w) => w.target_run_id));
  const runs = await allRuns(db);
  const noticesOf = Map.groupBy(runs, (run) => {
    const { provenance } = run.input;
    return provenance?.kind === "notice" ? (provenance.runId ?? "") : "";
  });
  for (const run of runs) {
    if (run.flow?.step !== "round1") continue;
    const { flowId } = run.flow;
    const flow = await getFlow(db, flowId);
    const requester = flow === undefined ? undefined : await getSession(db, flow.requesterKey);
    const notices = noticesOf.get(run.runId)?.length ?? 0;
    const carried = runs.some(
      (other) => other.flow?.flowId === flowId && other.flow.turn === 2 && other.flow.step === "reply",
    );
    const byWait = answered.has(run.runId);
    const about = `outcome of ${run.runId} (${run.state}): wait ${byWait}, turn ${carried}, notices ${notices}`;
    expect(notices, about).toBeLessThanOrEqual(byWait || carried ? 0 : 1);
    const reachable = requester !== undefined && requester.sessionId === flow?.requesterSessionId;
    if (reachable && requester.key !== run.sessionKey)
      expect(byWait || carried || notices === 1, `never told: ${about}`).toBe(true);
  }
}

/** F2: checks that each tool call has one result, and that no text of a run is stored twice. */
export async function checkTranscripts(db: Db): Promise<void> {
  for (const { session_id } of await db.selectFrom("session_ids").select("session_id").execute()) {
    const entries = (await readContext(db, session_id)).flatMap((entry) =>
      isCompaction(entry) ? [] : [entry],
    );
    const calls = entries.flatMap(toolCallsOf).map((call) => call.id);
    const results = entries.flatMap((m) => (m.role === "toolResult" ? [m.toolCallId] : []));
    expect(results.toSorted(), `results in ${session_id}`).toEqual(calls.toSorted());
  }
  const rows = await db.selectFrom("messages").selectAll().where("role", "=", "assistant").execute();
  const said = new Set<string>();
  for (const row of rows) {
    const text = textOf(JSON.parse(row.entry_json));
    if (text === "" || row.run_id === null) continue;
    expect(said.has(`${row.run_id} ${text}`), `kept twice: ${text}`).toBe(false);
    said.add(`${row.run_id} ${text}`);
  }
}

/** I8: checks that a chain counts its runs correctly and stays within its limits. */
export async function checkChains(db: Db, limits: { maxHops: number; maxChainRuns: number }): Promise<void> {
  const turns = (await allRuns(db)).filter((run) => run.kind === "turn");
  const byChain = Map.groupBy(turns, (run) => run.chainId);
  for (const { chain_id, runs } of await db.selectFrom("chains").selectAll().execute()) {
    expect(byChain.get(chain_id)?.length ?? 0, `chain ${chain_id}`).toBe(runs);
    expect(runs).toBeLessThanOrEqual(limits.maxChainRuns);
  }
  for (const run of turns) expect(run.hop).toBeLessThanOrEqual(limits.maxHops);
}

/**
 * Checks that no waiting run has ended (I1), and that the open waits form no cycle (I7). May be called at any
 * time. `now`: waits whose deadline is before this time are ignored, because their rows are updated slightly
 * later.
 */
export async function checkWaiting(db: Db, now: number): Promise<void> {
  const stale = await db
    .selectFrom("waits")
    .innerJoin("runs", "runs.run_id", "waits.waiter_run_id")
    .select(["waits.call_id", "runs.state"])
    .where("waits.state", "=", "open")
    .where("runs.ended_at", "is not", null)
    .execute();
  expect(stale, "waits of runs that have ended").toEqual([]);
  const open = await db
    .selectFrom("waits")
    .selectAll()
    .where("state", "=", "open")
    .where("deadline_at", ">", now)
    .execute();
  const edges = new Set(
    open.filter((w) => w.waiter_run_id !== "").map((w) => `${w.waiter_session_key} ${w.target_session_key}`),
  );
  // Repeatedly removes sessions that no session waits for. Sessions that remain form a cycle.
  for (let before = -1; before !== edges.size; ) {
    before = edges.size;
    const targets = new Set([...edges].map((edge) => edge.split(" ")[1]));
    for (const edge of edges) if (!targets.has(edge.split(" ")[0])) edges.delete(edge);
  }
  expect([...edges], "I7: waits in a cycle").toEqual([]);
}

/** Runs all checks of a store without unfinished work, except those of jobs. */
export async function checkTalk(
  db: Db,
  accepted: readonly string[],
  limits: { maxHops: number; maxChainRuns: number },
): Promise<void> {
  await checkRuns(db, accepted);
  await checkFlows(db);
  await checkDeliveries(db);
  await checkTold(db);
  await checkTranscripts(db);
  await checkChains(db, limits);
}
