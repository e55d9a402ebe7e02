// Checks a crash test after all work has ended: the store, the clients' answers, the requests to the model,
// the side effects of tools, and the JSONL copies.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import {
  type Entry,
  isCompaction,
  type Message,
  textOf,
  toolCallsOf,
} from "../../../src/core/shapes/message.ts";
import type { Db } from "../../../src/store/sql.ts";
import { checkJobs, checkTalk, checkWaiting } from "../engine/flow-checks.ts";
import { linesOfCopy } from "../store/copy-lines.ts";
import type { CrashModel, ModelCall } from "./model.ts";
import type { Told } from "./talker.ts";

export interface CrashFacts {
  readonly db: Db;
  readonly told: Told;
  readonly model: CrashModel;
  readonly effectsFile: string;
  /** The folder of the JSONL copies. Absent if the store has none. */
  readonly copiesDir: string | undefined;
  /** Maximum difference between the clocks of the processes. */
  readonly skewMs: number;
  /** The agent whose commands need an approval each. */
  readonly asking: string;
  isBroken(life: string): boolean;
}

/** Numbers that a crash test reports. */
export interface CrashCounts {
  readonly runs: Readonly<Record<string, number>>;
  readonly flows: number;
  readonly jobs: number;
  readonly modelCalls: number;
  /** Model answers that a crash lost and that were requested again. */
  readonly askedAgain: number;
  readonly effects: number;
  /** Side effects whose tool call reports an unknown outcome. */
  readonly unknownOutcomes: number;
  /** Commands that the owner allowed. */
  readonly allowed: number;
  /** Commands that the owner denied. */
  readonly denied: number;
  readonly transcripts: number;
}

async function entriesOf(db: Db): Promise<Map<string, Message[]>> {
  const rows = await db.selectFrom("messages").select(["session_id", "entry_json"]).orderBy("seq").execute();
  const bySession = Map.groupBy(rows, (row) => row.session_id);
  return new Map(
    [...bySession].map(([sessionId, its]) => [
      sessionId,
      its
        .map((row) => JSON.parse(row.entry_json) as Entry)
        .filter((entry): entry is Message => !isCompaction(entry)),
    ]),
  );
}

/** I4: checks that the message that started a run is stored only once. */
async function checkInputs(db: Db): Promise<void> {
  const rows = await db.selectFrom("messages").select("run_id").where("role", "=", "user").execute();
  const runIds = rows.flatMap((row) => (row.run_id === null ? [] : [row.run_id]));
  const twice = runIds.filter((runId, at) => runIds.indexOf(runId) !== at);
  expect(twice, "I4: runs whose message is written twice").toEqual([]);
}

/** Checks that each tool result directly follows its call. */
function checkOrder(transcripts: ReadonlyMap<string, readonly Message[]>): void {
  for (const [sessionId, messages] of transcripts) {
    const open = new Set<string>();
    for (const message of messages) {
      if (message.role === "toolResult") {
        expect(open.delete(message.toolCallId), `a result before its call in ${sessionId}`).toBe(true);
      } else {
        expect([...open], `calls without results before ${message.id} in ${sessionId}`).toEqual([]);
        for (const call of toolCallsOf(message)) open.add(call.id);
      }
    }
    expect([...open], `calls without results at the end of ${sessionId}`).toEqual([]);
  }
}

/**
 * I1, I3: checks that the runs of a lane began in order of acceptance, each one after the end of the previous
 * one.
 */
async function checkLanes({ db, skewMs }: CrashFacts): Promise<Record<string, number>> {
  const rows = await db
    .selectFrom("runs")
    .select(["run_id", "session_key", "state", "started_at", "ended_at"])
    .where("kind", "=", "turn")
    .orderBy("session_key")
    .orderBy("lane_seq")
    .execute();
  const counts: Record<string, number> = {};
  let before: (typeof rows)[number] | undefined;
  for (const row of rows) {
    counts[row.state] = (counts[row.state] ?? 0) + 1;
    if (row.started_at === null) continue;
    if (before?.session_key === row.session_key) {
      const about = `I1, I3: ${row.run_id} after ${before.run_id} in ${row.session_key}`;
      expect(Number(row.started_at) + skewMs, about).toBeGreaterThanOrEqual(Number(before.ended_at));
    }
    before = row;
  }
  return counts;
}

/** Checks that the store agrees with every answer that a client received. */
async function checkWord(db: Db, told: Told): Promise<void> {
  const rows = await db.selectFrom("runs").select(["run_id", "state"]).execute();
  const states = new Map(rows.map((row) => [row.run_id, row.state]));
  for (const [runId, end] of told.accepted) {
    expect(states.has(runId), `I2: ${runId} was accepted and is gone`).toBe(true);
    if (end !== undefined) expect(states.get(runId), `${runId} was told to be ${end}`).toBe(end);
  }
}

/**
 * I4: checks that the store has at most one model answer to each request, and that no stored answer was
 * requested again.
 */
function checkAsked(facts: CrashFacts, transcripts: ReadonlyMap<string, readonly Message[]>): number {
  const kept = new Set<string>();
  for (const message of [...transcripts.values()].flat()) {
    for (const call of toolCallsOf(message)) kept.add(call.id);
    if (message.role === "assistant") kept.add(textOf(message));
  }
  const isKept = (call: ModelCall): boolean => call.marks.some((mark) => kept.has(mark));
  const answered = facts.model.calls.filter((call) => call.end === "answered");
  let again = 0;
  for (const [first, ...more] of Map.groupBy(answered, (call) => call.asked).values()) {
    if (first === undefined || more.length === 0) continue;
    again += more.length;
    const all = [first, ...more];
    const about = `${all.map((call) => `${call.number} of ${call.life}`).join(", ")} in ${first.sessionKey}`;
    expect(all.filter(isKept).length, `I4: a step was made twice: ${about}`).toBeLessThanOrEqual(1);
    for (const call of all.slice(0, -1)) {
      expect(facts.isBroken(call.life), `I4: asked again without need: ${about}`).toBe(true);
    }
  }
  return again;
}

/**
 * I4: checks that a side effect happens at most once, and exactly once if its tool call reports success. It
 *     never happens before the call is stored. A command that needs an approval runs only if the owner allowed
 *     it.
 */
async function checkEffects(
  facts: CrashFacts,
  transcripts: ReadonlyMap<string, readonly Message[]>,
): Promise<{ effects: number; unknownOutcomes: number }> {
  const { db, model, effectsFile, asking } = facts;
  const { decided } = facts.told;
  const lines = existsSync(effectsFile) ? readFileSync(effectsFile, "utf8").split("\n") : [];
  const done = Map.groupBy(
    lines.filter((line) => line !== ""),
    (line) => line,
  );
  const results = new Map<string, string>();
  const calls = new Set<string>();
  for (const message of [...transcripts.values()].flat()) {
    if (message.role === "toolResult") results.set(message.toolCallId, textOf(message));
    for (const call of toolCallsOf(message)) calls.add(call.id);
  }
  const there = new Set((await db.selectFrom("sessions").select("key").execute()).map((row) => row.key));
  const sessionOf = new Map(model.calls.flatMap((call) => call.marks.map((mark) => [mark, call.sessionKey])));
  let unknownOutcomes = 0;
  for (const [effect, callId] of model.effects) {
    const times = done.get(effect)?.length ?? 0;
    const result = results.get(callId) ?? "";
    expect(times, `I4: effect ${effect} of ${callId}`).toBeLessThanOrEqual(1);
    if (result.startsWith('{"status":"ok"')) expect(times, `${callId} says it is done`).toBe(1);
    if (result.includes("outcome_unknown")) unknownOutcomes += 1;
    const sessionKey = sessionOf.get(callId) ?? "";
    if (decided.deny.has(effect)) expect(times, `${callId} was denied and has run`).toBe(0);
    if (times > 0 && sessionKey.startsWith(`agent:${asking}:`)) {
      expect(decided.allow.has(effect), `${callId} has run and nobody allowed it`).toBe(true);
    }
    const isDeleted = !there.has(sessionKey);
    if (times > 0 && !isDeleted) expect(calls.has(callId), `${callId} was run and is not kept`).toBe(true);
  }
  for (const effect of done.keys())
    expect(model.effects.has(effect), `nobody asked for ${effect}`).toBe(true);
  return { effects: done.size, unknownOutcomes };
}

/**
 * Checks that the JSONL copy of each session has its table's lines, that no older copy has others, and that
 * deleted transcripts have none.
 */
export async function checkCopies(db: Db, dir: string): Promise<void> {
  const ids = await db.selectFrom("session_ids").select(["session_id", "session_key"]).execute();
  const rows = await db.selectFrom("messages").select(["session_id", "entry_json"]).orderBy("seq").execute();
  const lines = Map.groupBy(rows, (row) => row.session_id);
  const sessions = await db.selectFrom("sessions").select("session_id").where("archived", "=", 0).execute();
  const current = new Set(sessions.map((row) => row.session_id));
  for (const { session_id: id, session_key: key } of ids) {
    // An empty transcript needs no copy.
    if (!lines.has(id)) continue;
    const file = join(dir, `${id}.jsonl`);
    // A start completes only the copies of current transcripts.
    if (!current.has(id) && !existsSync(file)) continue;
    const { head, entries } = linesOfCopy(readFileSync(file, "utf8"));
    if (current.has(id) || head !== undefined) expect(head, `head of ${id}`).toMatchObject({ id, key });
    const stored = (lines.get(id) ?? []).map((row) => row.entry_json);
    expect(entries, `copy of ${id}`).toEqual(current.has(id) ? stored : stored.slice(0, entries.length));
  }
  const known = new Set(ids.map((row) => `${row.session_id}.jsonl`));
  // A copy that contains only a header, complete or not, has no message.
  const speaks = (name: string): boolean => readFileSync(join(dir, name), "utf8").split("\n").length > 2;
  const copies = readdirSync(dir).filter((name) => name.includes(".jsonl") && !known.has(name));
  expect(copies.filter(speaks), "copies of what was deleted").toEqual([]);
}

/** Runs all checks of a crash test. Throws at the first violation. Returns the counts. */
export async function checkStory(facts: CrashFacts): Promise<CrashCounts> {
  const { db, told, model, copiesDir } = facts;
  expect(told.problems).toEqual([]);
  expect(model.problems).toEqual([]);
  const transcripts = await entriesOf(db);
  await checkTalk(db, [...told.accepted.keys()], { maxHops: 16, maxChainRuns: 200 });
  const runs = await checkLanes(facts);
  await checkWord(db, told);
  const jobs = await checkJobs(db);
  await checkWaiting(db, 0);
  await checkInputs(db);
  checkOrder(transcripts);
  const askedAgain = checkAsked(facts, transcripts);
  const { effects, unknownOutcomes } = await checkEffects(facts, transcripts);
  if (copiesDir !== undefined) await checkCopies(db, copiesDir);
  const flows = await db.selectFrom("flows").select("flow_id").where("kind", "=", "send").execute();
  return {
    runs,
    flows: flows.length,
    jobs,
    modelCalls: model.calls.length,
    askedAgain,
    effects,
    unknownOutcomes,
    allowed: told.decided.allow.size,
    denied: told.decided.deny.size,
    transcripts: transcripts.size,
  };
}
