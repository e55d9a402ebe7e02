// Checks a story after each time step, when everything that needs no timer has happened. Safety is checked
// from the rows alone, even if no process runs. Progress is only expected of a process that is running, not
// paused, has no pending store operation, and had space on its disk.

import { nameQueue } from "../../../src/core/rules/run-queue.ts";
import { isEnded, type RunState } from "../../../src/core/shapes/run.ts";
import type { GatewayProcess } from "../process.ts";
import type { Story, Work } from "../story.ts";
import type { Row } from "../world/database.ts";
import { ReceiptChecks } from "./receipt.ts";

/** Tolerance for late timers and a slow store. */
const PATIENCE_MS = 10;
const SLOW_PATIENCE_MS = 100;
/** Tolerance for an end that was delayed by a full disk. */
const AFTER_REFUSAL_MS = 3_000;
/** Maximum number of deliveries that the outbox attempts at once. */
const OUTBOX_MAX = 16;

const ACTIVE_RUNS = `select run_id, session_key, state, kind, lane_seq, started_at, timeout_ms, attempt, queue,
  ready_at, hop, chain_id from runs where state in ('queued', 'running', 'waiting') order by session_key, lane_seq`;
/**
 * Selects the open waits. `in_inbox`: the target's message is in an inbox, and the sender waits for its
 * answer.
 */
const OPEN_WAITS = `select w.*, r.kind = 'append' and r.state = 'ok' as in_inbox from waits w
  join runs r on r.run_id = w.target_run_id where w.state = 'open'`;
/** Selects slots and executing runs that do not belong together. */
const UNPAIRED = `select s.run_id from slots s where s.run_id is not null
    and not exists (select 1 from runs r where r.run_id = replace(s.run_id, 'sub-agent ', '')
      and r.state = 'running')
  union all select r.run_id from runs r where r.state = 'running'
    and not exists (select 1 from slots s where s.run_id = r.run_id)`;
const CHAINS = "select chain_id, runs from chains";
const NEW_MESSAGES =
  "select seq, run_id, role from messages where seq > ? and run_id is not null order by seq";
/** A deletion blanks the replies of a session's runs. */
const ENDS = `select run_id, state, ended_at, reply, code from runs where ended_at >= ?1
    and exists (select 1 from session_ids i where i.session_id = runs.session_id)
  union all select flow_id, state, ended_at, end_reason, null from flows where ended_at >= ?1`;
const OPEN_JOBS = `select requester_key, count(*) as n from flows where kind = 'spawn' and state = 'open'
  group by requester_key`;
/** Selects undelivered results of sub-agents that were deleted or archived. */
const ORPHANS = `select d.id, f.target_key from deliveries d join runs r on r.run_id = d.run_id
  join flows f on f.flow_id = r.flow_id where d.state = 'pending' and f.kind = 'spawn' and not exists
  (select 1 from sessions s where s.key = f.target_key and s.archived_at is null)`;

/** State that the next check needs. */
export class StepChecks {
  #lastSeq = 0;
  /** Ids of runs that have ended. */
  readonly #ended = new Set<string>();
  readonly #chains = new Map<string, number>();
  /** The recorded end of each run and flow, by its id. */
  readonly #ends = new Map<string, string>();
  readonly #children = new Map<string, number>();
  #sinceMs = 0;
  #commits = -1;
  readonly #story: Story;
  readonly #receipts: ReceiptChecks;

  constructor(story: Story) {
    this.#story = story;
    this.#receipts = new ReceiptChecks(story);
  }

  async check(processes: readonly GatewayProcess[]): Promise<void> {
    const commits = processes.reduce((sum, one) => sum + (one.faults?.commits ?? 0), 0);
    const active = await this.#story.look(ACTIVE_RUNS);
    const waits = await this.#story.look(OPEN_WAITS);
    if (commits !== this.#commits) {
      this.#commits = commits;
      this.#checkRows(active, waits);
      for (const { run_id } of await this.#story.look(UNPAIRED))
        this.#story.wrong("I6", `run ${String(run_id)} has a slot and does not execute, or the reverse`);
      await this.#checkMessages(active);
      await this.#checkChains();
      await this.#checkEnds();
      await this.#receipts.check();
      await this.#checkJobs();
    }
    for (const process of processes) {
      if (isAtRest(this.#story, process)) await checkProgress(this.#story, process, active, waits);
    }
  }

  #checkRows(active: readonly Row[], waits: readonly Row[]): void {
    const story = this.#story;
    const held = active.filter((run) => run.state !== "queued").map((run) => run.session_key);
    if (new Set(held).size !== held.length) story.wrong("I1", `a lane has two holders: ${held.join()}`);
    const states = new Map(active.map((run) => [run.run_id, run.state]));
    for (const wait of waits) {
      const { waiter_run_id: waiter, target_run_id: target, call_id } = wait;
      if (waiter !== "" && !states.has(waiter))
        story.wrong("I1", `${String(call_id)} waits for a run that has ended`);
      if (!states.has(target) && wait.in_inbox !== 1)
        story.wrong("I4", `${String(call_id)} waits for a run that has ended`);
    }
    checkCycles(story, waits);
  }

  /** I1: checks that nothing is written for a run that has ended. */
  async #checkMessages(active: readonly Row[]): Promise<void> {
    const story = this.#story;
    const rows = await story.look(NEW_MESSAGES, this.#lastSeq);
    for (const { run_id, seq, role } of rows) {
      const runId = String(run_id);
      if (this.#ended.has(runId))
        story.wrong("I1", `run ${runId} has ended, and a message ${String(role)} is written`);
      this.#lastSeq = Number(seq);
    }
    const alive = new Set(active.map((run) => run.run_id));
    for (const { run_id } of rows) if (!alive.has(run_id)) this.#ended.add(String(run_id));
  }

  /** RS3: checks that the end of a run or flow never changes. */
  async #checkEnds(): Promise<void> {
    for (const row of await this.#story.look(ENDS, this.#sinceMs)) {
      const [id, end] = [String(row.run_id), JSON.stringify(row)];
      const known = this.#ends.get(id) ?? end;
      if (known !== end) this.#story.wrong("I1", `what had ended as ${known} ends as ${end}`);
      this.#ends.set(id, known);
    }
    this.#sinceMs = this.#story.time.now();
  }

  /**
   * Checks that no session has too many children, and that no child is removed before its result is delivered
   * (AR1).
   */
  async #checkJobs(): Promise<void> {
    const story = this.#story;
    if (story.epochs.length === 0) return;
    const { maxChildren } = story.settingsAt(story.time.now()).subagents;
    const open = new Map(
      (await story.look(OPEN_JOBS)).map((row) => [String(row.requester_key), Number(row.n)]),
    );
    for (const [key, count] of open) {
      if (count > maxChildren && count > (this.#children.get(key) ?? 0))
        story.wrong("I8", `${key} has ${count} unfinished sub-agents; ${maxChildren} are allowed`);
    }
    this.#children.clear();
    for (const [key, count] of open) this.#children.set(key, count);
    for (const { id, target_key } of await story.look(ORPHANS)) {
      if (!story.stopped.has(String(target_key)) && !story.retried.has(String(id)))
        story.wrong("AR1", `${String(target_key)} is gone before its result ${String(id)} has left`);
    }
  }

  /** I8: checks that no chain gets more runs than the current settings allow. */
  async #checkChains(): Promise<void> {
    const story = this.#story;
    if (story.epochs.length === 0) return;
    const { maxChainRuns } = story.settingsAt(story.time.now()).session.agentToAgent;
    for (const row of await story.look(CHAINS)) {
      const [id, runs] = [String(row.chain_id), Number(row.runs)];
      if (runs > (this.#chains.get(id) ?? 0) && runs > maxChainRuns)
        story.wrong("I8", `chain ${id} has ${runs} runs; ${maxChainRuns} are allowed`);
      this.#chains.set(id, runs);
    }
  }
}

/** I7: repeatedly removes sessions that no session waits for. Sessions that remain form a cycle. */
function checkCycles(story: Story, waits: readonly Row[]): void {
  const now = story.time.now();
  let edges = waits
    .filter((wait) => wait.waiter_run_id !== "" && Number(wait.deadline_at) > now)
    .map((wait) => ({ from: wait.waiter_session_key, to: wait.target_session_key }));
  for (let before = -1; before !== edges.length; ) {
    before = edges.length;
    const targets = new Set(edges.map((edge) => edge.to));
    edges = edges.filter((edge) => targets.has(edge.from));
  }
  const shown = edges.map(({ from, to }) => `${String(from)} -> ${String(to)}`);
  if (edges.length > 0) story.wrong("I7", `waits in a cycle: ${shown.join(", ")}`);
}

function isAtRest(story: Story, process: GatewayProcess): boolean {
  if (process.state !== "up" || process.paused || process.faults.underWay > 0) return false;
  return story.time.now() - process.faults.refusedAt > AFTER_REFUSAL_MS;
}

/** Returns whether the runs of a queue count as sub-agents. */
const isChild = (queue: unknown): boolean => String(queue).startsWith("2");

/** Returns the runs that execute in a process and do not wait: each holds a slot. */
function holders(story: Story, process: GatewayProcess, active: readonly Row[]): readonly Work[] {
  const waiting = new Set(active.filter((run) => run.state === "waiting").map((run) => run.run_id));
  const isHolding = ({ process: of, run, signal }: Work) =>
    of === process.name && !waiting.has(run.runId) && !signal.aborted;
  return [...story.works].filter(isHolding);
}

interface Room {
  readonly all: number;
  readonly children: number;
}

/** Returns whether a run of this queue could take a slot. */
const fitsIn = (room: Room, queue: unknown): boolean =>
  room.all > 0 && (!isChild(queue) || room.children > 0);

async function checkProgress(
  story: Story,
  process: GatewayProcess,
  active: readonly Row[],
  waits: readonly Row[],
): Promise<void> {
  const { maxConcurrent, subagents } = process.settings;
  const holding = holders(story, process, active);
  const children = holding.filter((work) => isChild(nameQueue(work.run))).length;
  const room = {
    all: maxConcurrent - holding.length,
    children: subagents.maxConcurrent - children,
  };
  if (room.all < 0 || room.children < 0)
    story.wrong("I6", `${holding.length} runs hold slots, ${children} of them sub-agents'`);
  checkLanes(story, process, active, room);
  checkWaiting(story, process, active, waits, room);
  await checkOutbox(story, process);
  await checkDates(story, process);
}

/** Returns whether work that is due at this time should be done by now. */
function isLate(story: Story, process: GatewayProcess, dueMs: number): boolean {
  const patienceMs = story.plan.features.slowStore ? SLOW_PATIENCE_MS : PATIENCE_MS;
  return story.time.now() - Math.max(dueMs, process.awakeMs) > patienceMs;
}

/** I2, I6: checks that the first run of each lane executes, or that no slot is free for it. */
function checkLanes(story: Story, process: GatewayProcess, active: readonly Row[], room: Room): void {
  const executing = new Map(
    [...story.works]
      .filter((work) => work.process === process.name)
      .map((work) => [work.run.sessionKey, work]),
  );
  for (const [key, lane] of Map.groupBy(active, (run) => String(run.session_key))) {
    const [head] = lane;
    const work = executing.get(key);
    if (head === undefined) continue;
    const about = `run ${String(head.run_id)} of ${key}`;
    if (head.state === "queued" && work === undefined) {
      if (head.kind === "append") story.wrong("I2", `${about} is an append, and nobody writes it down`);
      if (head.ready_at === null) story.wrong("I2", `${about} is the head of its lane, and not ready`);
      if (isLate(story, process, Number(head.ready_at)) && fitsIn(room, head.queue))
        story.wrong("I2", `${about} waits in its lane, and there is a slot for it`);
    }
    if (head.state !== "queued" && work?.run.runId !== head.run_id)
      story.wrong("I2", `${about} is ${String(head.state)}, and nobody executes it`);
    const limit = Number(head.timeout_ms);
    const dueMs = Math.max(Number(head.started_at) + limit, work?.beganMs ?? 0);
    const isOver = limit > 0 && isLate(story, process, dueMs);
    if (head.state !== "queued" && isOver) story.wrong("I2", `${about} is past its time`);
  }
}

/** Returns whether a run may pause without a slot, until other runs have settled their costs. */
function mayPause({ settings }: GatewayProcess, { run }: Work): boolean {
  const { maxChainTokens, maxChainCost } = settings.session.agentToAgent;
  return (maxChainTokens ?? maxChainCost ?? run.input.tokenLimit) !== undefined;
}

/**
 * I6: checks that a run whose tool calls all wait holds no slot, and that a run without waits continues as
 * soon as a slot is free.
 */
function checkWaiting(
  story: Story,
  process: GatewayProcess,
  active: readonly Row[],
  waits: readonly Row[],
  room: Room,
): void {
  const states = new Map(active.map((run) => [run.run_id, run.state as RunState]));
  const isAsking = (run: Row): boolean => run.state === "waiting" && run.ready_at !== null;
  const asking = new Set(active.filter(isAsking).map((run) => run.run_id));
  const began = new Map([...story.works].map((work) => [work.run.runId, work.beganMs]));
  for (const wait of waits) {
    const waiter = String(wait.waiter_run_id);
    const dueMs = Math.max(Number(wait.deadline_at), began.get(waiter) ?? 0);
    if ((waiter === "" || began.has(waiter)) && isLate(story, process, dueMs))
      story.wrong("I2", `${String(wait.call_id)} waits beyond its deadline`);
  }
  for (const work of story.works) {
    if (work.process !== process.name) continue;
    const state = states.get(work.run.runId);
    if (state === undefined || isEnded(state)) continue;
    const open = waits.filter((wait) => wait.waiter_run_id === work.run.runId).length;
    if (state === "running" && work.thinking === 0 && work.calling > 0 && open === work.calling)
      story.wrong("I6", `run ${work.run.runId} only waits, and holds a slot`);
    const isDone = state === "waiting" && open === 0 && !mayPause(process, work);
    if ((isDone || asking.has(work.run.runId)) && fitsIn(room, nameQueue(work.run)))
      story.wrong("I6", `run ${work.run.runId} waits for nothing any more, and there is a slot for it`);
  }
}

const TIMERS = "select key, due_at from deadlines where kind like 'texts %' order by key";
const FIRST_DELIVERIES = `select route_key as key, next_attempt_at as due_at from deliveries
  where seq in (select min(seq) from deliveries where state = 'pending' group by route_key) order by route_key`;

/** I5: checks that each route has its timer, and that its first due delivery is being sent. */
async function checkOutbox(story: Story, process: GatewayProcess): Promise<void> {
  const [timers, firsts] = [await story.look(TIMERS), await story.look(FIRST_DELIVERIES)];
  if (JSON.stringify(timers) !== JSON.stringify(firsts))
    story.wrong("I5", `the timers ${JSON.stringify(timers)} are not those of ${JSON.stringify(firsts)}`);
  const rows = await story.look(`select id, route_key, attempt_open, next_attempt_at from deliveries
    where state = 'pending' order by seq`);
  const open = rows.filter((row) => row.attempt_open === 1).length;
  if (open >= OUTBOX_MAX || process.state !== "up") return;
  for (const [, [first]] of Map.groupBy(rows, (row) => row.route_key)) {
    if (first === undefined || first.attempt_open === 1) continue;
    // The outbox sets a timer only while it sends nothing. If it is sending, it checks again after the
    // attempt.
    if (open === 0 && isLate(story, process, Number(first.next_attempt_at)))
      story.wrong("I5", `delivery ${String(first.id)} is due, and nobody makes it`);
  }
}

/** Longest time after which a clean-up that work holds up is tried again, and a tolerance. */
const HELD_MAX_MS = 120_000;
/** Selects children that are to be deleted, and wait long although no result of theirs is undelivered. */
const FORGOTTEN = `select d.key from deadlines d join sessions s on s.key = d.key
  where d.kind = 'child' and s.spawn_json ->> 'cleanup' = 'delete' and d.due_at > ?
    and not exists (select 1 from deliveries x join runs r on r.run_id = x.run_id
      where x.state = 'pending' and r.flow_id = s.spawn_json ->> 'flowId')`;

/** Checks that stored deadlines are handled when they are due, and that no clean-up is forgotten. */
async function checkDates(story: Story, process: GatewayProcess): Promise<void> {
  const [first] = await story.look(
    "select key, due_at from deadlines where kind not like 'texts %' order by due_at limit 1",
  );
  const isPast = first !== undefined && isLate(story, process, Number(first.due_at));
  if (isPast) story.wrong("I2", `the date of ${String(first.key)} has passed, and nobody acts on it`);
  for (const { key } of await story.look(FORGOTTEN, story.time.now() + HELD_MAX_MS))
    story.wrong("AR1", `the result of ${String(key)} has left, and nobody cleans up`);
}
