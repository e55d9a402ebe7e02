// Reads facts about runs that are not in the transcript: outcome, usage, flow step. One query reads the facts
// for a whole page. Inputs are read only for waiting runs, and only if they are short.

import { sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import { receiptOf } from "../../../core/rules/receipt.ts";
import type { Code } from "../../../core/shapes/errors.ts";
import type { Usage } from "../../../core/shapes/message.ts";
import type {
  FlowStep,
  ReceiptState,
  Run,
  RunFacts,
  RunInput,
  RunKind,
  RunState,
} from "../../../core/shapes/run.ts";
import { type Db, present } from "../../sql.ts";
import { toMark } from "./inbox-marks.ts";
import { ACTIVE } from "./runs.ts";

/** Maximum number of runs of a lane that are returned. */
const QUEUE_MAX = 20;
/** Maximum size of an input that is shown while the run waits. */
const INPUT_BYTES_MAX = 64 * 1024;
/** Only replies up to this length are read, to detect a reply that means "no reply". */
const REPLY_CHARS_MAX = 64;

export type EndedRun = Pick<Run, "runId" | "state" | "code" | "endedAt" | "error"> & {
  /** True if the run is not a step of a flow, and nobody has dismissed or retried it. */
  readonly open: boolean;
};

/** Returns how these runs ended, by run id. */
export async function endsOf(db: Db, runIds: readonly string[]): Promise<Map<string, EndedRun>> {
  if (runIds.length === 0) return new Map();
  const rows = await db
    .selectFrom("runs")
    .select(["run_id", "state", "code", "error", "ended_at", "flow_id", "dismissed_at"])
    .where("run_id", "in", runIds)
    .execute();
  return new Map(
    rows.map((row) => [
      row.run_id,
      {
        runId: row.run_id,
        state: row.state as RunState,
        ...present("code", row.code as Code | null),
        ...present("endedAt", row.ended_at),
        ...present("error", row.error),
        open: row.flow_id === null && row.dismissed_at === null,
      },
    ]),
  );
}

function factsQuery(db: Db) {
  return db
    .selectFrom("runs")
    .leftJoin("flows", "flows.flow_id", "runs.flow_id")
    .leftJoin("inbox_marks", "inbox_marks.run_id", "runs.run_id")
    .select([
      "runs.run_id",
      "runs.session_key",
      "runs.kind",
      "runs.state",
      "accepted_at",
      "started_at",
      "runs.ended_at",
      "model",
      "usage_json",
      "code",
      "error",
      "crashes",
      "runs.chain_id",
      "runs.flow_id",
      "flow_step",
      "flow_turn",
      "turns_max",
      // The text that means "no reply" is short, so longer replies need not be read.
      sql<string | null>`case when length(reply) <= ${REPLY_CHARS_MAX} then reply else 'more' end`.as("said"),
      "heard_at",
      ...(["offered_at", "in_turn_at", "outcome", "inbox_marks.ended_at as mark_ended_at"] as const),
    ]);
}

type FactsRow = Awaited<ReturnType<ReturnType<typeof factsQuery>["execute"]>>[number];

function receiptIn(row: FactsRow, run: RunFacts): ReceiptState | undefined {
  const mark = toMark({ ...row, ended_at: row.mark_ended_at });
  const heard = present("heardAt", row.heard_at);
  const facts = { ...run, ...heard, sessionKey: row.session_key, reply: row.said ?? "" };
  return receiptOf({ run: facts, mark })?.state;
}

function toFacts(row: FactsRow): RunFacts {
  const run = bareFacts(row);
  return { ...run, ...optional({ receipt: receiptIn(row, run) }) };
}

function bareFacts(row: FactsRow): RunFacts {
  const { flow_id, flow_step, flow_turn, turns_max } = row;
  return {
    runId: row.run_id,
    kind: row.kind as RunKind,
    state: row.state as RunState,
    acceptedAt: row.accepted_at,
    ...(row.started_at === null ? {} : { startedAt: row.started_at }),
    ...(row.ended_at === null ? {} : { endedAt: row.ended_at }),
    ...(row.model === null ? {} : { model: row.model }),
    ...(row.usage_json === null ? {} : { usage: JSON.parse(row.usage_json) as Usage }),
    ...(row.code === null ? {} : { code: row.code }),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.crashes === 0 ? {} : { crashes: row.crashes }),
    chainId: row.chain_id,
    ...(flow_id === null || flow_step === null
      ? {}
      : {
          flow: {
            flowId: flow_id,
            step: flow_step as FlowStep,
            turn: flow_turn ?? 1,
            ...(turns_max === null ? {} : { turnsMax: turns_max }),
          },
        }),
  };
}

/** Returns the facts of these runs in no particular order. Unknown runs are missing. */
export async function factsOfRuns(db: Db, runIds: readonly string[]): Promise<RunFacts[]> {
  if (runIds.length === 0) return [];
  const rows = await factsQuery(db).where("runs.run_id", "in", runIds).execute();
  return rows.map(toFacts);
}

export interface LaneFacts extends RunFacts {
  /** Input of the run. Absent if it is long or the run has begun. */
  readonly input?: RunInput;
}

/** Returns the first unfinished runs of a session, in lane order. */
export async function factsOfLane(db: Db, sessionKey: string): Promise<LaneFacts[]> {
  const rows = await factsQuery(db)
    .select(
      sql<string | null>`case when runs.state = 'queued' and octet_length(input_json) <= ${INPUT_BYTES_MAX}
        then input_json end`.as("input"),
    )
    .where("runs.session_key", "=", sessionKey)
    .where("runs.state", "in", ACTIVE)
    .orderBy("lane_seq")
    .limit(QUEUE_MAX)
    .execute();
  return rows.map((row) => ({
    ...toFacts(row),
    ...(row.input === null ? {} : { input: JSON.parse(row.input) as RunInput }),
  }));
}
