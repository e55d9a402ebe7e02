// Reads the runs that may need a person's attention: active runs, and the last turn of each session. A query
// reads the last turns of at most `SCANNED_MAX` sessions, newest first, so its cost does not grow with the
// number of runs. Archived, reset and deleted sessions are skipped.

import { type RawBuilder, sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import type { Scope } from "../../../core/rules/visibility.ts";
import type { ActiveRunState, EndedRunState, FlowStep, RunHold, RunInput } from "../../../core/shapes/run.ts";
import { type Db, kindOf, type Nulls, type Tx, withoutNulls } from "../../sql.ts";
import { inScope } from "../sessions/session-scope.ts";
import { stageOf } from "./holds.ts";
import { ACTIVE } from "./runs.ts";

const SCANNED_MAX = 2_000;
/** Number of characters at the end of a reply that are read to detect a question. */
const TAIL_CHARS = 1_000;
/**
 * Number of characters to read of a text that is later cut to one line. It is large, so that a secret at the
 * cut is complete and can be redacted.
 */
const TEXT_CHARS = 4_000;
/** Larger inputs are not read. The tools and results of a client stand beside the text. */
const INPUT_BYTES_MAX = 1024 * 1024;

interface TurnOf {
  readonly runId: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly chainId: string;
  readonly label?: string;
  readonly flowStep?: FlowStep;
}

/** Last turn of a session, if it has ended. */
export interface EndedTurn extends TurnOf {
  readonly state: EndedRunState;
  readonly endedAt: number;
  readonly code?: string;
  readonly error?: string;
  /** Model of the last call. */
  readonly model?: string;
  /** End of the turn's reply. */
  readonly tail: string;
  /** The agent is elsewhere, and waits for another message. */
  readonly asks: boolean;
  readonly dismissed: boolean;
}

/** An active turn: it runs, waits, or is queued. */
export interface ActiveTurn extends TurnOf {
  readonly state: ActiveRunState;
  readonly acceptedMs: number;
  /** Model that the session has instead of its agent's. */
  readonly sessionModel?: string;
  /** Present while a person holds the turn. */
  readonly hold?: RunHold;
  /** Time when the turn began to run, to wait or to queue. */
  readonly sinceMs: number;
}

/** The sessions whose turns are returned, and the maximum number of turns. */
interface Wanted {
  readonly scope: Scope;
  readonly limit: number;
}

/** Returns an expression for the last characters of a text column. */
function endOf(db: Db, column: RawBuilder<unknown>, chars: number): RawBuilder<unknown> {
  return kindOf(db) === "sqlite"
    ? sql`substr(${column}, ${sql.lit(-chars)})`
    : sql`right(${column}, ${sql.lit(chars)})`;
}

const TURN = sql`r.run_id as "runId", r.session_key as "sessionKey", r.agent_id as "agentId",
  r.chain_id as "chainId", r.flow_step as "flowStep", coalesce(s.label, s.display_name) as label`;

/**
 * SQL for failed turns and for done turns: the sessions to search, their last turn, and the states of that
 * turn. `done` leaves out external sessions: all their runs are messages, so the search for a turn would read
 * every run.
 */
const ENDS = {
  failed: {
    sessions: sql`s.failed_run is not null`,
    turn: sql`r.run_id = s.failed_run and not exists (select 1 from runs later
      where later.session_key = r.session_key and later.lane_seq > r.lane_seq and later.kind = 'turn')`,
    states: sql`('error', 'timeout')`,
  },
  done: {
    sessions: sql`s.failed_run is null and s.external = 0`,
    turn: sql`r.run_id = (select turn.run_id from runs turn
      where turn.session_key = s.key and turn.kind = 'turn' order by turn.lane_seq desc limit 1)`,
    states: sql`('ok', 'aborted')`,
  },
};

/**
 * Returns the last turn of each session, if it ended at or after `sinceMs`, newest first. `failed` selects
 * turns that failed or timed out, `done` those that succeeded or were aborted.
 */
export async function lastTurns(
  db: Db,
  how: keyof typeof ENDS,
  { scope, limit, sinceMs }: Wanted & { readonly sinceMs: number },
): Promise<EndedTurn[]> {
  const { sessions, turn, states } = ENDS[how];
  // The end of a run also updates its session, so `updated_at` is at least the time of the end.
  const { rows } = await sql<
    Nulls<Omit<EndedTurn, "asks" | "dismissed">> & { asks: number; dismissed_at: number | null }
  >`
    select ${TURN}, r.state, r.ended_at as "endedAt", r.code, r.error, r.model,
      coalesce(${endOf(db, sql`r.reply`, TAIL_CHARS)}, '') as tail, r.dismissed_at,
      (select count(*) from remote_tasks t
        where t.session_id = r.session_id and t.run_id = r.run_id and t.is_asking = 1) as asks
    from (select s.key, s.session_id, s.failed_run, s.label, s.display_name from sessions s
      where ${sessions} and s.updated_at >= ${sinceMs} and ${inScope(db, { scope })}
      order by s.updated_at desc, s.key desc limit ${sql.lit(SCANNED_MAX)}) s
    cross join runs r
    where ${turn} and r.session_id = s.session_id and r.state in ${states} and r.ended_at >= ${sinceMs}
    order by r.ended_at desc, r.run_id limit ${sql.lit(limit)}`.execute(db);
  return rows.map(({ asks, dismissed_at, ...row }) => {
    return { ...withoutNulls(row), asks: asks > 0, dismissed: dismissed_at !== null } as EndedTurn;
  });
}

const SINCE = {
  running: sql`coalesce(r.started_at, r.accepted_at)`,
  // The last stored message of a waiting run contains the tool call that waits.
  waiting: sql`coalesce((select m.created_at from messages m where m.run_id = r.run_id
    order by m.seq desc limit 1), r.started_at, r.accepted_at)`,
  queued: sql`r.accepted_at`,
};

/**
 * Returns the turns in one state, newest first. Without `everyQueued`, a queued turn is returned only if it
 * is the next in its lane and the lane has no running or waiting turn.
 */
export async function activeTurns(
  db: Db,
  state: ActiveRunState,
  { scope, limit, everyQueued = false }: Wanted & { readonly everyQueued?: boolean },
): Promise<ActiveTurn[]> {
  const head = sql`and not exists (select 1 from runs ahead
      where ahead.session_key = r.session_key and ahead.state in ('queued', 'running', 'waiting')
        and (ahead.state <> 'queued' or ahead.lane_seq < r.lane_seq))`;
  const { rows } = await sql<Nulls<Omit<ActiveTurn, "state" | "hold">> & { readonly hold: string | null }>`
    select ${TURN}, ${SINCE[state]} as "sinceMs", r.accepted_at as "acceptedMs",
      s.model as "sessionModel", r.hold
    from runs r cross join sessions s
    where r.state = ${sql.lit(state)} and r.kind = 'turn' and s.key = r.session_key
      and ${inScope(db, { scope })} ${state === "queued" && !everyQueued ? head : sql``}
    order by r.accepted_at desc, r.lane_seq desc, r.run_id limit ${sql.lit(limit)}`.execute(db);
  return rows.map(({ hold, ...row }) => ({
    ...withoutNulls<Omit<ActiveTurn, "state" | "hold">>(row),
    ...optional({ hold: stageOf(hold) }),
    state,
  }));
}

/** Returns for each of these runs the sessions that it waits for. */
export async function awaitedSessions(
  db: Db,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (runIds.length === 0) return new Map();
  const ids = sql.join(runIds);
  const { rows } = await sql<{ waiter: string; target: string }>`
    select waiter_run_id as waiter, target_session_key as target from waits
      where waiter_run_id in (${ids}) and state = 'open'`.execute(db);
  const awaited = new Map<string, string[]>();
  for (const { waiter, target } of rows) {
    const known = awaited.get(waiter) ?? [];
    if (!known.includes(target)) known.push(target);
    awaited.set(waiter, known);
  }
  return awaited;
}

/** Returns for each of these sessions those that it spawned and that have an unfinished run. */
export async function busyJobs(
  db: Db,
  sessionKeys: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (sessionKeys.length === 0) return new Map();
  const { rows } = await sql<{ parent: string; key: string }>`
    select distinct s.spawned_by as parent, s.key from runs r join sessions s on s.key = r.session_key
    where r.state in (${sql.join(ACTIVE)}) and s.spawned_by in (${sql.join(sessionKeys)}) and s.archived = 0
    order by s.key`.execute(db);
  const groups = Map.groupBy(rows, ({ parent }) => parent);
  return new Map([...groups].map(([parent, jobs]) => [parent, jobs.map(({ key }) => key)]));
}

/** Shortened texts of a run: the input, and the start and end of the reply. */
export interface TurnTexts {
  readonly input: string;
  /** Number of failed runs of the same message before this one. */
  readonly retries: number;
  readonly reply: string;
  readonly replyEnd: string;
}

/** Returns the texts of these runs, by run id. */
export async function textsOfTurns(
  db: Db,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, TurnTexts>> {
  if (runIds.length === 0) return new Map();
  const { rows } = await sql<
    Record<"run_id", string> & Record<"input" | "reply" | "reply_end", string | null>
  >`
    select run_id, substr(reply, 1, ${sql.lit(TEXT_CHARS)}) as reply,
      ${endOf(db, sql`reply`, TEXT_CHARS)} as reply_end,
      case when octet_length(input_json) <= ${sql.lit(INPUT_BYTES_MAX)} then input_json end as input
    from runs where run_id in (${sql.join(runIds)})`.execute(db);
  return new Map(
    rows.map(({ run_id, input, reply, reply_end }) => {
      const { text, retries = 0 }: RunInput = input === null ? { text: "" } : JSON.parse(input);
      return [run_id, { input: text, retries, reply: reply ?? "", replyEnd: reply_end ?? "" }];
    }),
  );
}

/**
 * Dismisses the last turn of a session. `retriedBy` is the run that repeats the turn. Returns false if the
 * turn is no longer the last one, or was already dismissed.
 */
export async function dismissTurn(
  tx: Tx,
  runId: string,
  { at, retriedBy = "" }: { readonly at: number; readonly retriedBy?: string },
): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`update runs set dismissed_at = ${at}
    where run_id = ${runId} and ended_at is not null and dismissed_at is null and kind = 'turn'
      and not exists (select 1 from runs later where later.session_key = runs.session_key
        and later.lane_seq > runs.lane_seq and later.kind = 'turn' and later.run_id <> ${retriedBy})`.execute(
    tx,
  );
  return numAffectedRows > 0n;
}
