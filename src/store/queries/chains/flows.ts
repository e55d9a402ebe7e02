// Owns the flow table: one row per conversation between two sessions, and one per job of a sub-agent. A flow
// is changed only by a transaction that ends one of its runs, or that aborts, resets or deletes one of its
// sessions.

import { type Selectable, sql } from "kysely";
import type { JobOutcome } from "../../../core/rules/announcement.ts";
import { held } from "../../locks.ts";
import { prepared } from "../../prepared.ts";
import type { FlowTable } from "../../schema/tables.ts";
import type { Db, Tx } from "../../sql.ts";
import { answerWaits } from "../runs/waits.ts";

export interface Flow {
  readonly flowId: string;
  /** `send`: a conversation. `spawn`: a job of a sub-agent, whose session is the target. */
  readonly kind: "send" | "spawn";
  readonly chainId: string;
  readonly requesterKey: string;
  /** Id of the requester's transcript when it sent the request. */
  readonly requesterSessionId: string;
  readonly requesterRunId?: string;
  readonly targetKey: string;
  readonly open: boolean;
  /** Maximum number of turns after the first answer. */
  readonly turnsMax: number;
  readonly requestText: string;
  readonly round1Reply?: string;
  readonly latestReply?: string;
  readonly createdAt: number;
  readonly endedAt?: number;
  readonly endReason?: string;
  /** Outcome of a finished job. */
  readonly outcome?: JobOutcome;
}

/** A flow without its texts. */
export type FlowOutline = Omit<Flow, "requestText" | "round1Reply" | "latestReply" | "outcome">;

/** A literal instead of a parameter, so that queries can use a partial index (see runs.ts). */
const OPEN = sql.lit("open");

function toFlow(row: Selectable<FlowTable>): Flow {
  return {
    flowId: row.flow_id,
    kind: row.kind as Flow["kind"],
    chainId: row.chain_id,
    requesterKey: row.requester_key,
    requesterSessionId: row.requester_session_id,
    ...(row.requester_run_id === null ? {} : { requesterRunId: row.requester_run_id }),
    targetKey: row.target_key,
    open: row.state === "open",
    turnsMax: row.turns_max,
    requestText: row.request_text,
    ...(row.round1_reply === null ? {} : { round1Reply: row.round1_reply }),
    ...(row.latest_reply === null ? {} : { latestReply: row.latest_reply }),
    createdAt: row.created_at,
    ...(row.ended_at === null ? {} : { endedAt: row.ended_at }),
    ...(row.end_reason === null ? {} : { endReason: row.end_reason }),
    ...(row.outcome_json === null ? {} : { outcome: JSON.parse(row.outcome_json) as JobOutcome }),
  };
}

export async function insertFlow(tx: Tx, flow: Flow): Promise<void> {
  await tx
    .insertInto("flows")
    .values({
      flow_id: flow.flowId,
      kind: flow.kind,
      chain_id: flow.chainId,
      requester_key: flow.requesterKey,
      requester_session_id: flow.requesterSessionId,
      requester_run_id: flow.requesterRunId ?? null,
      target_key: flow.targetKey,
      state: "open",
      turns_max: flow.turnsMax,
      request_text: flow.requestText,
      round1_reply: null,
      latest_reply: null,
      created_at: flow.createdAt,
      ended_at: null,
      end_reason: null,
    })
    .execute();
}

const flowWith = (db: Db, { flowId }: { readonly flowId: string }) =>
  db.selectFrom("flows").selectAll().where("flow_id", "=", flowId);
const FLOW = prepared(flowWith);
const HELD_FLOW = prepared((tx, wanted: { readonly flowId: string }) => held(tx as Tx, flowWith(tx, wanted)));

export async function getFlow(db: Db, flowId: string): Promise<Flow | undefined> {
  const [row] = (await FLOW(db, { flowId })).rows;
  return row && toFlow(row);
}

/** Like `getFlow`, but locks the row until the transaction ends. */
export async function holdFlow(tx: Tx, flowId: string): Promise<Flow | undefined> {
  const [row] = (await HELD_FLOW(tx, { flowId })).rows;
  return row && toFlow(row);
}

export async function noteReply(tx: Tx, flowId: string, reply: string, round1: boolean): Promise<void> {
  await tx
    .updateTable("flows")
    .set(round1 ? { round1_reply: reply, latest_reply: reply } : { latest_reply: reply })
    .where("flow_id", "=", flowId)
    .execute();
}

/** Ends an open flow. Returns false if the flow had already ended; its first reason then stays. */
export async function endFlow(tx: Tx, flowId: string, reason: string, at: number): Promise<boolean> {
  const done = await tx
    .updateTable("flows")
    .set({ state: "ended", end_reason: reason, ended_at: at })
    .where("flow_id", "=", flowId)
    .where("state", "=", "open")
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Ends an open job, stores its outcome, and answers those who wait for the job. */
export async function endJob(
  tx: Tx,
  flowId: string,
  end: { readonly reason: string; readonly outcome: JobOutcome; readonly at: number },
): Promise<boolean> {
  if (!(await endFlow(tx, flowId, end.reason, end.at))) return false;
  const outcome_json = JSON.stringify(end.outcome);
  await tx.updateTable("flows").set({ outcome_json }).where("flow_id", "=", flowId).execute();
  await answerWaits(tx, flowId, end.at);
  return true;
}

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
export async function spawnsOfRun(db: Db, requesterRunId: string): Promise<Flow[]> {
  const rows = await db
    .selectFrom("flows")
    .selectAll()
    .where("requester_run_id", "=", requesterRunId)
    .where("kind", "=", "spawn")
    .orderBy("created_at")
    .execute();
  return rows.map(toFlow);
}

/** Returns the job of a sub-agent, even after its session was deleted. */
export async function jobOfChild(db: Db, targetKey: string): Promise<Flow | undefined> {
  const row = await db
    .selectFrom("flows")
    .selectAll()
    .where("target_key", "=", targetKey)
    .where("kind", "=", "spawn")
    .orderBy("created_at")
    .limit(1)
    .executeTakeFirst();
  return row && toFlow(row);
}

/** Returns whether `requesterKey` sent a message to `targetKey` in this chain after the given time. */
export async function hasSentInChain(
  db: Db,
  sent: { chainId: string; requesterKey: string; targetKey: string; afterMs: number },
): Promise<boolean> {
  const row = await db
    .selectFrom("flows")
    .select("flow_id")
    .where("chain_id", "=", sent.chainId)
    .where("requester_key", "=", sent.requesterKey)
    .where("target_key", "=", sent.targetKey)
    .where("kind", "=", "send")
    .where("created_at", ">", sent.afterMs)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

const OUTLINE = [
  "flow_id",
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
] as const;

const NO_TEXTS = { request_text: "", round1_reply: null, latest_reply: null, outcome_json: null };

/** Returns the flows of a chain, newest first. */
export async function flowsOfChain(db: Db, chainId: string, limit: number): Promise<FlowOutline[]> {
  const rows = await db
    .selectFrom("flows")
    .select(OUTLINE)
    .where("chain_id", "=", chainId)
    .orderBy("created_at", "desc")
    .limit(limit)
    .execute();
  return rows.map((row) => toFlow({ ...row, ...NO_TEXTS }));
}

/** Returns open flows that a run started. */
export async function openFlowsOfRun(db: Db, requesterRunId: string): Promise<Flow[]> {
  const rows = await db
    .selectFrom("flows")
    .selectAll()
    .where("requester_run_id", "=", requesterRunId)
    .where("state", "=", "open")
    .execute();
  return rows.map(toFlow);
}

/** Returns open flows in which this session takes part, oldest first. */
export async function openFlowsOf(db: Db, sessionKey: string): Promise<Flow[]> {
  const rows = await db
    .selectFrom("flows")
    .selectAll()
    .where("state", "=", "open")
    .where((eb) => eb.or([eb("requester_key", "=", sessionKey), eb("target_key", "=", sessionKey)]))
    .orderBy("created_at")
    .execute();
  return rows.map(toFlow);
}

/** Returns unfinished sub-agent jobs that a session, or one of its runs, started. */
export async function openSpawnsOf(
  db: Db,
  requester: { sessionKey: string; runId?: string },
): Promise<Flow[]> {
  let query = db
    .selectFrom("flows")
    .selectAll()
    .where("requester_key", "=", requester.sessionKey)
    .where("kind", "=", "spawn")
    .where("state", "=", "open")
    .orderBy("created_at");
  if (requester.runId !== undefined) query = query.where("requester_run_id", "=", requester.runId);
  return (await query.execute()).map(toFlow);
}
