// Reads facts about runs that are not in the transcript: outcome, usage, flow step. One query reads the facts
// for a whole page. Inputs are read only for waiting runs, and only if they are short.

import { sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import { receiptOf } from "../../../core/rules/receipt.ts";
import type { Run, RunFacts, RunInput } from "../../../core/shapes/run.ts";
import { recordsOf } from "../../records.ts";
import type { Db } from "../../sql.ts";
import { stageOf } from "./holds.ts";
import { toMark } from "./inbox-marks.ts";
import { ACTIVE, FLOW_COLUMNS } from "./runs.ts";

/** Maximum number of runs of a lane that are returned. */
const QUEUE_MAX = 20;
/** Maximum size of an input that is shown while the run waits, with the tools and results of its client. */
const INPUT_BYTES_MAX = 1024 * 1024;
/** Only replies up to this length are read, to detect a reply that means "no reply". */
const REPLY_CHARS_MAX = 64;

type StoredEnd = Pick<Run, "runId" | "state" | "code" | "endedAt" | "error" | "flow"> & {
  readonly dismissedAt?: number;
};
/** `open`: the run is not a step of a flow, and nobody has dismissed or retried it. */
export type EndedRun = Omit<StoredEnd, "flow" | "dismissedAt"> & { readonly open: boolean };

const ENDS = recordsOf<StoredEnd, EndedRun>()(
  "runs",
  {
    key: ["run_id"],
    columns: ["state", "code", "ended_at", "error", "dismissed_at"],
    names: FLOW_COLUMNS,
  },
  ({ flow, dismissedAt, ...run }) => ({ ...run, open: flow === undefined && dismissedAt === undefined }),
);

const INPUTS = recordsOf<Pick<Run, "runId" | "input">>()("runs", {
  key: ["run_id"],
  columns: ["input_json"],
});

/** Returns the inputs of those of the runs whose inputs say that they may be from outside, by run id. */
export async function outsideInputs(db: Db, runIds: readonly string[]): Promise<Map<string, RunInput>> {
  if (runIds.length === 0) return new Map();
  const runs = INPUTS.rows(db)
    .where("run_id", "in", runIds)
    .where((is) =>
      is.or([is("input_json", "like", '%"guest":true%'), is("input_json", "like", '%"outside":%')]),
    );
  return new Map((await INPUTS.all(runs)).map(({ runId, input }) => [runId, input]));
}

/** Returns how these runs ended, by run id. */
export async function endsOf(db: Db, runIds: readonly string[]): Promise<Map<string, EndedRun>> {
  if (runIds.length === 0) return new Map();
  const runs = await ENDS.all(ENDS.rows(db).where("run_id", "in", runIds));
  return new Map(runs.map((run) => [run.runId, run]));
}

type StoredFacts = Omit<RunFacts, "receipt" | "hold"> &
  Pick<Run, "sessionKey" | "heardAt"> & { readonly hold?: string };

const FACTS = recordsOf<StoredFacts>()("runs", {
  key: ["run_id"],
  columns: [
    "session_key",
    "kind",
    "state",
    "accepted_at",
    "started_at",
    "heard_at",
    "ended_at",
    "model",
    "usage_json",
    "code",
    "error",
    "crashes",
    "chain_id",
    "hold",
  ],
  names: FLOW_COLUMNS,
});

function factsQuery(db: Db) {
  return FACTS.rows(db)
    .leftJoin("flows", "flows.flow_id", "runs.flow_id")
    .leftJoin("inbox_marks", "inbox_marks.run_id", "runs.run_id")
    .select([
      "turns_max",
      // The text that means "no reply" is short, so longer replies need not be read.
      sql<string | null>`case when length(reply) <= ${REPLY_CHARS_MAX} then reply else 'more' end`.as("said"),
      ...(["offered_at", "in_turn_at", "outcome", "inbox_marks.ended_at as mark_ended_at"] as const),
    ]);
}

function toFacts(row: Awaited<ReturnType<ReturnType<typeof factsQuery>["execute"]>>[number]): RunFacts {
  const stored = FACTS.read(row);
  const { sessionKey: _, heardAt: __, crashes = 0, flow, hold, ...run } = stored;
  const turnsMax = row.turns_max ?? undefined;
  const mark = toMark({ ...row, ended_at: row.mark_ended_at });
  return {
    ...run,
    ...optional({
      crashes: crashes === 0 ? undefined : crashes,
      hold: run.endedAt === undefined ? stageOf(hold) : undefined,
      flow: flow && { ...flow, ...optional({ turnsMax }) },
      receipt: receiptOf({ run: { ...stored, reply: row.said ?? "" }, mark })?.state,
    }),
  };
}

/** Returns the facts of these runs in no particular order. Unknown runs are missing. */
export async function factsOfRuns(db: Db, runIds: readonly string[]): Promise<RunFacts[]> {
  if (runIds.length === 0) return [];
  return (await factsQuery(db).where("runs.run_id", "in", runIds).execute()).map(toFacts);
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

export type PrecedingRun = Pick<Run, "runId" | "sessionKey" | "acceptedAt" | "flow"> & {
  readonly endedAt: number;
};

const ENDED = recordsOf<PrecedingRun>()("runs", {
  key: ["run_id"],
  columns: ["session_key", "accepted_at", "ended_at"],
  names: FLOW_COLUMNS,
});

/** Maximum number of preceding runs that are returned, beginning with the one that ended last. */
const PRECEDING_MAX = 500;

/**
 * Returns the turns of a run's chain that ended before the run was accepted, and may have caused it. The
 * turn that ended last comes first.
 */
export function precedingRuns(
  db: Db,
  { runId, chainId, acceptedAt }: Pick<Run, "runId" | "chainId" | "acceptedAt">,
): Promise<PrecedingRun[]> {
  const turns = ENDED.rows(db)
    .where((eb) => eb.and({ chain_id: chainId, kind: "turn" }))
    .where("run_id", "!=", runId)
    .where("accepted_at", "<=", acceptedAt)
    .where("ended_at", "<=", acceptedAt);
  return ENDED.all(turns.orderBy("ended_at", "desc").orderBy("accepted_at", "desc").limit(PRECEDING_MAX));
}
