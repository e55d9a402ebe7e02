// Owns the flow table: one row per conversation between two sessions, and one per job of a sub-agent. A flow
// is changed only by a transaction that ends one of its runs, or that aborts, resets or deletes one of its
// sessions.

import { sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import type { JobOutcome } from "../../../core/rules/announcement.ts";
import type { ChosenEnd } from "../../../core/shapes/run.ts";
import { prepared } from "../../prepared.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import type { Db, Tx } from "../../sql.ts";
import { answerWaits } from "../runs/waits.ts";

type Stored = RecordOf<
  "flows",
  {
    readonly kind: "send" | "spawn";
    readonly state: "open" | "ended";
    readonly outcome?: JobOutcome;
    readonly chosenEnd?: ChosenEnd;
  }
>;

/**
 * `send`: a conversation. `spawn`: a job of a sub-agent, whose session is the target. `requesterSessionId`
 * is the requester's transcript when it sent the request. `turnsMax` is the number of turns after the first
 * answer.
 */
export interface Flow extends Omit<Stored, "state"> {
  readonly open: boolean;
}

/** A flow without its texts. */
export type FlowOutline = Omit<Flow, "requestText" | "round1Reply" | "latestReply" | "outcome">;

const OUTLINE = [
  "kind",
  "chain_id",
  "requester_key",
  "requester_session_id",
  "requester_run_id",
  "target_key",
  "state",
  "turns_max",
  "created_at",
  "ended_at",
  "end_reason",
  "chosen_end",
] as const;

const FLOWS = recordsOf<Stored, Flow>()(
  "flows",
  {
    key: ["flow_id"],
    columns: [...OUTLINE, "request_text", "round1_reply", "latest_reply", "outcome_json"],
  },
  ({ state, ...flow }) => ({ ...flow, open: state === "open" }),
);

export const insertFlow = (tx: Tx, { open, ...flow }: Flow) =>
  FLOWS.insert(tx, { ...flow, state: open ? "open" : "ended" });

export const getFlow = (db: Db, flowId: string) => FLOWS.find(db, { flowId });

/** Like `getFlow`, but locks the row until the transaction ends. */
export const holdFlow = (tx: Tx, flowId: string) => FLOWS.hold(tx, { flowId });

export const noteReply = (tx: Tx, flowId: string, latestReply: string, round1: boolean) =>
  FLOWS.change(tx, { flowId }, { latestReply, ...(round1 ? { round1Reply: latestReply } : {}) });

/** Ends an open flow. Returns false if the flow had already ended; its first reason then stays. */
export const endFlow = (tx: Tx, flowId: string, endReason: string, endedAt: number) =>
  FLOWS.change(tx, { flowId, state: "open" }, { state: "ended", endReason, endedAt });

/** Ends an open job, stores its outcome, and answers those who wait for the job. */
export async function endJob(
  tx: Tx,
  flowId: string,
  end: { readonly reason: string; readonly outcome: JobOutcome; readonly at: number },
): Promise<boolean> {
  if (!(await endFlow(tx, flowId, end.reason, end.at))) return false;
  await FLOWS.change(tx, { flowId }, { outcome: end.outcome });
  await answerWaits(tx, flowId, end.at);
  return true;
}

/** A literal instead of a parameter, so that queries can use a partial index (see runs.ts). */
const OPEN = sql.lit("open");

/** Returns the links from these sessions to their sub-agents with unfinished jobs. */
export async function openSpawnEdges(
  db: Db,
  requesterKeys: readonly string[],
): Promise<{ from: string; to: string }[]> {
  if (requesterKeys.length === 0) return [];
  const rows = await db
    .selectFrom("flows")
    .select(["requester_key", "target_key"])
    .where("requester_key", "in", requesterKeys)
    .where("kind", "=", "spawn")
    .where("state", "=", OPEN)
    .execute();
  return rows.map((row) => ({ from: row.requester_key, to: row.target_key }));
}

/** Returns the sub-agent jobs that a run started, finished or not, oldest first. */
export const spawnsOfRun = (db: Db, requesterRunId: string) =>
  FLOWS.all(FLOWS.rows(db, { requesterRunId, kind: "spawn" }).orderBy("created_at"));

/** Returns the job of a sub-agent, even after its session was deleted. */
export async function jobOfChild(db: Db, targetKey: string): Promise<Flow | undefined> {
  const jobs = FLOWS.rows(db, { targetKey, kind: "spawn" }).orderBy("created_at").limit(1);
  return (await FLOWS.all(jobs))[0];
}

/** Returns whether `requesterKey` sent a message to `targetKey` in this chain after the given time. */
export async function hasSentInChain(
  db: Db,
  sent: { chainId: string; requesterKey: string; targetKey: string; afterMs: number },
): Promise<boolean> {
  const { afterMs, ...fields } = sent;
  const flows = FLOWS.rows(db, { ...fields, kind: "send" }).where("created_at", ">", afterMs);
  const row = await flows.limit(1).clearSelect().select("flow_id").executeTakeFirst();
  return row !== undefined;
}

const OUTLINES = recordsOf<Omit<FlowOutline, "open"> & Pick<Stored, "state">, FlowOutline>()(
  "flows",
  { key: ["flow_id"], columns: OUTLINE },
  ({ state, ...flow }) => ({ ...flow, open: state === "open" }),
);

/** Returns the flows of a chain, newest first. */
export const flowsOfChain = (db: Db, chainId: string, limit: number) =>
  OUTLINES.all(OUTLINES.rows(db, { chainId }).orderBy("created_at", "desc").limit(limit));

/** Returns open flows that a run started. */
export const openFlowsOfRun = (db: Db, requesterRunId: string) =>
  FLOWS.all(FLOWS.rows(db, { requesterRunId, state: "open" }));

/** Returns open flows in which this session takes part, oldest first. */
export const openFlowsOf = (db: Db, sessionKey: string) =>
  FLOWS.all(
    FLOWS.rows(db, { state: "open" })
      .where((eb) => eb.or({ requester_key: sessionKey, target_key: sessionKey }))
      .orderBy("created_at"),
  );

/** Returns open conversations whose senders wait for this session to be idle, oldest first. */
export const flowsToNotify = (db: Db, targetKey: string) =>
  FLOWS.all(
    FLOWS.rows(db, { targetKey })
      .where("chosen_end", "=", "idle")
      .where("state", "=", OPEN)
      .orderBy("created_at"),
  );

const ANY_TO_NOTIFY = prepared((db, { targetKey }: { targetKey: string }) =>
  db
    .selectFrom("flows")
    .select("flow_id")
    .where("target_key", "=", targetKey)
    .where("chosen_end", "=", "idle")
    .where("state", "=", OPEN)
    .limit(1),
);

/** Returns whether a sender waits for this session to be idle. */
export async function hasFlowToNotify(db: Db, targetKey: string): Promise<boolean> {
  return (await ANY_TO_NOTIFY(db, { targetKey })).rows.length > 0;
}

/** Returns unfinished sub-agent jobs that a session, or one of its runs, started. */
export function openSpawnsOf(
  db: Db,
  { sessionKey, runId }: { readonly sessionKey: string; readonly runId?: string },
): Promise<Flow[]> {
  const ofRun = optional({ requesterRunId: runId });
  const jobs = FLOWS.rows(db, { requesterKey: sessionKey, kind: "spawn", state: "open", ...ofRun });
  return FLOWS.all(jobs.orderBy("created_at"));
}
