// Owns the run table: its rows, and how runs begin and end. claims.ts owns the claims.
// A unique index ensures that a lane has at most one run that is running or waiting (I1). A transaction that
// ends a run first locks its row and checks that it still holds the run (`isHeld`).
// RS3: the row of an ended run never changes, except that an operator may dismiss it once (attention.ts), its
//      client may forget it, and the deletion of its session blanks its texts.

import { sql } from "kysely";
import { objectOf, ownJson } from "../../../core/json.ts";
import { APPENDS, nameQueue } from "../../../core/rules/run-queue.ts";
import { type Usage, ZERO_USAGE } from "../../../core/shapes/message.ts";
import type { Route } from "../../../core/shapes/route.ts";
import type { Run, RunEnd, RunInput, RunState } from "../../../core/shapes/run.ts";
import { prepared } from "../../prepared.ts";
import { recordsOf } from "../../records.ts";
import { countRows, type Db, kindOf, type Tx } from "../../sql.ts";

/**
 * States as literals for queries. PostgreSQL uses a partial index in a generic plan only if the state is not
 * a parameter.
 */
export const QUEUED = sql.lit<RunState>("queued");
/** States in which a run holds its lane. */
export const HOLDING = [sql.lit<RunState>("running"), sql.lit<RunState>("waiting")];
export const ACTIVE = [QUEUED, ...HOLDING];

/**
 * Names the attempt in which an owner holds a run. Every commit for the run checks that the owner still holds
 * it in this attempt.
 */
export interface Fence {
  readonly runId: string;
  readonly owner: string;
  readonly attempt: number;
}

const UNREADABLE: RunInput = { text: "(The stored text of this message can't be read.)", unreadable: true };

/**
 * Marks a damaged value. Its run is then marked (`RunInput.unreadable`) instead of failing, because it would
 * block all rows that are read with it.
 */
const DAMAGED = "damaged";

const parseObject = (json: string) => objectOf(ownJson(json)) ?? DAMAGED;

type Stored = Omit<Run, "input" | "route" | "usage"> & {
  readonly input: RunInput | typeof DAMAGED;
  readonly route?: Route | typeof DAMAGED;
  readonly usage?: Usage | typeof DAMAGED;
};

export const FLOW_COLUMNS = {
  flow_id: "flow.flowId",
  flow_step: "flow.step",
  flow_turn: "flow.turn",
} as const;

export const RUNS = recordsOf<Stored, Run>()(
  "runs",
  {
    key: ["run_id"],
    columns: [
      "session_key",
      "session_id",
      "agent_id",
      "lane_seq",
      "kind",
      "state",
      "input_json",
      "chain_id",
      "hop",
      "attempt",
      "crashes",
      "accepted_at",
      "timeout_ms",
      "usage_json",
      "owner",
      "started_at",
      "heard_at",
      "ended_at",
      "route_json",
      "parent_run_id",
      "asked_by",
      "call_id",
      "reply",
      "code",
      "error",
      "model",
      "revision",
      "forgotten_at",
    ],
    names: FLOW_COLUMNS,
    parse: parseObject,
  },
  ({ input, route, usage, ...run }) => ({
    ...run,
    input: input === DAMAGED || route === DAMAGED ? UNREADABLE : input,
    usage: usage === undefined || usage === DAMAGED ? ZERO_USAGE : usage,
    ...(route === undefined || route === DAMAGED ? {} : { route }),
  }),
);

/** Returns the columns of a queued run, which has neither usage nor an owner. */
function queuedColumns({ usage: _, owner: __, ...run }: Run, readyAt: number | null) {
  return { ...RUNS.write(run), queue: nameQueue(run), ready_at: readyAt };
}

const INSERT = prepared((tx, columns: ReturnType<typeof queuedColumns>) =>
  tx.insertInto("runs").values(columns),
);

/** `readyAt`: when the run may start, if it is the head of an idle lane. */
export async function insertRun(tx: Tx, run: Run, readyAt: number | null = null): Promise<void> {
  await INSERT(tx, queuedColumns(run, readyAt));
}

export const getRun = (db: Db, runId: string) => RUNS.find(db, { runId });

/** Returns the run that a tool call started, if any. */
export const getRunOfCall = (db: Db, callId: string) => RUNS.find(db, { callId });

/** Makes the response of a run unavailable to the client that asked for it. */
export async function forgetRun(tx: Tx, runId: string, at: number): Promise<void> {
  await tx.updateTable("runs").set({ forgotten_at: at }).where("run_id", "=", runId).execute();
}

/** Returns unfinished runs of a session, in lane order. */
export const activeRuns = (db: Db, sessionKey: string) =>
  RUNS.all(RUNS.rows(db, { sessionKey }).where("state", "in", ACTIVE).orderBy("lane_seq"));

const ofFlow = (db: Db, flowId: string) => RUNS.rows(db).where("flow_id", "=", flowId);

/** Returns unfinished runs of a flow, in any session. */
export const activeRunsOfFlow = (db: Db, flowId: string) =>
  RUNS.all(ofFlow(db, flowId).where("state", "in", ACTIVE));

/** Returns the first runs of a chain, in the order in which they were accepted. */
export const runsOfChain = (db: Db, chainId: string, limit: number) =>
  RUNS.all(RUNS.rows(db, { chainId }).orderBy("accepted_at").orderBy("lane_seq").limit(limit));

/** Orders the runs of a chain. */
export const byAcceptance = (a: Run, b: Run): number => a.acceptedAt - b.acceptedAt || a.laneSeq - b.laneSeq;

const LANE_COUNT = prepared((db, { sessionKey }: { sessionKey: string }) =>
  db
    .selectFrom("runs")
    .select(["state", (eb) => eb.fn.countAll<number>().as("n")])
    .where("session_key", "=", sessionKey)
    .where("state", "in", ACTIVE)
    .groupBy("state"),
);

/** Counts the unfinished runs of a lane, and those that have not started. */
export async function countLane(db: Db, sessionKey: string): Promise<{ active: number; queued: number }> {
  const { rows } = await LANE_COUNT(db, { sessionKey });
  const count = (of: readonly { n: number }[]): number => of.reduce((sum, row) => sum + row.n, 0);
  return { active: count(rows), queued: count(rows.filter((row) => row.state === "queued")) };
}

/** Counts the unfinished runs in a lane that come before this one. */
export const countAhead = (db: Db, { sessionKey, laneSeq }: Run) =>
  countRows(RUNS.rows(db, { sessionKey }).where("state", "in", ACTIVE).where("lane_seq", "<", laneSeq));

export async function countByState(db: Db): Promise<Record<"queued" | "running" | "waiting", number>> {
  const rows = await db
    .selectFrom("runs")
    .select(["state", (eb) => eb.fn.countAll<number>().as("n")])
    .where("state", "in", ACTIVE)
    .groupBy("state")
    .execute();
  const counts = { queued: 0, running: 0, waiting: 0 };
  for (const row of rows) counts[row.state as keyof typeof counts] = row.n;
  return counts;
}

/** Counts the sessions with unfinished runs, and the runs in the longest lane. */
export async function laneFigures(db: Db): Promise<{ readonly busy: number; readonly longest: number }> {
  const { busy, longest } = await db
    .selectFrom((eb) =>
      eb
        .selectFrom("runs")
        .select((of) => of.fn.countAll<number>().as("n"))
        .where("state", "in", ACTIVE)
        .groupBy("session_key")
        .as("lane"),
    )
    .select((eb) => [eb.fn.countAll<number>().as("busy"), eb.fn.max<number | null>("n").as("longest")])
    .executeTakeFirstOrThrow();
  return { busy, longest: longest ?? 0 };
}

const HEARD = prepared((tx, { runId, at }: { runId: string; at: number }) =>
  tx.updateTable("runs").set({ heard_at: at }).where("run_id", "=", runId).where("heard_at", "is", null),
);

/** Records the time of the first answer of a run's model. Returns false if it was already recorded. */
export async function noteHeard(tx: Tx, runId: string, at: number): Promise<boolean> {
  return ((await HEARD(tx, { runId, at })).numAffectedRows ?? 0n) > 0n;
}

export interface RunEndFacts {
  readonly end: RunEnd;
  readonly usage: Usage;
  readonly model?: string;
  readonly revision?: string;
}

function endColumns({ end, usage, model, revision }: RunEndFacts) {
  return {
    state: end.state,
    ready_at: null,
    ended_at: end.endedAt,
    reply: end.reply ?? null,
    code: end.code ?? null,
    error: end.error ?? null,
    usage_json: JSON.stringify(usage),
    model: model ?? null,
    revision: revision ?? null,
  };
}

const END = prepared((tx, { runId, ...columns }: { runId: string } & ReturnType<typeof endColumns>) =>
  tx.updateTable("runs").set(columns).where("run_id", "=", runId).where("state", "in", ACTIVE),
);

const END_HELD = prepared((tx, values: Fence & ReturnType<typeof endColumns>) => {
  const { runId, owner, attempt, ...columns } = values;
  return tx
    .updateTable("runs")
    .set(columns)
    .where("run_id", "=", runId)
    .where("owner", "=", owner)
    .where("attempt", "=", attempt)
    .where("state", "in", HOLDING);
});

/**
 * Ends an unfinished run. Returns false, and changes nothing, if it had ended, or if the owner of the fence
 * does not hold it in this attempt.
 */
export async function endRun(tx: Tx, runId: string, facts: RunEndFacts, fence?: Fence): Promise<boolean> {
  const columns = endColumns(facts);
  const done = fence === undefined ? END(tx, { runId, ...columns }) : END_HELD(tx, { ...fence, ...columns });
  return ((await done).numAffectedRows ?? 0n) > 0n;
}

/** Returns runs that ended at or after this time, oldest first. */
export const endedSince = (db: Db, sinceMs: number, limit: number) =>
  RUNS.all(RUNS.rows(db).where("ended_at", ">=", Math.round(sinceMs)).orderBy("ended_at").limit(limit));

/** Turns a queued turn into an append: its text is stored, and no model runs. */
export async function makeAppend(tx: Tx, runId: string): Promise<void> {
  await tx
    .updateTable("runs")
    .set({
      kind: "append",
      queue: APPENDS,
      flow_id: null,
      flow_step: null,
      flow_turn: null,
      route_json: null,
    })
    .where("run_id", "=", runId)
    .where("state", "=", QUEUED)
    .execute();
}

/** Returns every run of a flow, oldest first. */
export const runsOfFlow = (db: Db, flowId: string) => RUNS.all(ofFlow(db, flowId).orderBy("lane_seq"));

export interface RunFilter {
  readonly sessionKey: string;
  readonly states?: readonly RunState[];
  readonly limit: number;
}

/** Returns runs of a session, newest first. */
export function listRuns(db: Db, { sessionKey, states, limit }: RunFilter): Promise<Run[]> {
  const runs = RUNS.rows(db, { sessionKey }).orderBy("lane_seq", "desc").limit(limit);
  return RUNS.all(states === undefined ? runs : runs.where("state", "in", states));
}

/** Returns whether no other turn of the run's session has succeeded, in any of its transcripts. */
export async function isFirstAnswer(
  db: Db,
  { runId, sessionKey }: Pick<Run, "runId" | "sessionKey">,
): Promise<boolean> {
  const turns = RUNS.rows(db, { sessionKey, state: "ok", kind: "turn" });
  const other = turns.where("run_id", "!=", runId).limit(1).clearSelect().select("run_id");
  return (await other.executeTakeFirst()) === undefined;
}

/** Fields of an input that hold no text. */
const KEPT_OF_INPUT = ["provenance", "guest", "injected", "steer", "takenBy", "compact", "retries"];

/** Blanks the messages of a session's runs. Their inputs keep who wrote them. */
export async function eraseInputs(tx: Tx, sessionKey: string): Promise<void> {
  const isEmbedded = kindOf(tx) === "sqlite";
  const fields = KEPT_OF_INPUT.map((name) => {
    const value = isEmbedded ? sql`input_json -> ${name}` : sql`input_json::json -> ${name}::text`;
    return sql`${sql.lit(name)}, ${value}`;
  });
  const input = isEmbedded
    ? sql<string>`json_patch('{}', json_object('text', '', ${sql.join(fields)}))`
    : sql<string>`json_strip_nulls(json_build_object('text', '', ${sql.join(fields)}))::text`;
  await tx.updateTable("runs").set({ input_json: input }).where("session_key", "=", sessionKey).execute();
}
