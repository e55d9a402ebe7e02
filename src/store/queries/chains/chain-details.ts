// Reads everything about one chain for its detail page: runs, flows, waits, refusals, deliveries and
// messages. Reads only the newest runs, and only a limited number of bytes of their texts.

import { sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import type { Receipt, Run } from "../../../core/shapes/run.ts";
import { type Db, withoutNulls } from "../../sql.ts";
import { type Delivery, deliveriesOfRuns } from "../channels/deliveries.ts";
import { receiptsOf } from "../runs/inbox-marks.ts";
import { byAcceptance, RUNS } from "../runs/runs.ts";
import { type Wait, waitsOfCalls } from "../runs/waits.ts";
import { type ChainHead, HEADS, LABEL } from "./chain-lists.ts";
import { type FlowOutline, flowsOfChain } from "./flows.ts";
import { type Refusal, refusalsOf } from "./refusals.ts";

export interface RunMessages {
  readonly input?: MessageRef;
  readonly answer?: MessageRef;
}
type MessageRef = Record<"id" | "sessionId", string>;

export interface ChainSession {
  readonly key: string;
  readonly sessionId: string;
  readonly label?: string;
  readonly kind: string;
}

/** A chain with all its rows. If a limit is exceeded, the oldest rows are missing. */
export interface WholeChain {
  readonly head?: ChainHead;
  /** Oldest first. */
  readonly runs: readonly Run[];
  readonly flows: ReadonlyMap<string, FlowOutline>;
  /** Waits, by the id of the tool call that waits. */
  readonly waits: ReadonlyMap<string, Wait>;
  readonly refusals: readonly Refusal[];
  readonly deliveries: readonly Delivery[];
  /** Receipts, by run id. */
  readonly receipts: ReadonlyMap<string, Receipt>;
  /** Messages, by run id. */
  readonly messages: ReadonlyMap<string, RunMessages>;
  readonly sessions: ReadonlyMap<string, ChainSession>;
  readonly truncated: boolean;
}

async function runsOf(
  db: Db,
  chainId: string,
  most: { stepsMax: number; bytesMax: number },
): Promise<{ runs: Run[]; truncated: boolean }> {
  const sizes = await db
    .selectFrom("runs")
    .select(["run_id", sql<number>`octet_length(input_json) + coalesce(octet_length(reply), 0)`.as("bytes")])
    .where("chain_id", "=", chainId)
    .orderBy("accepted_at", "desc")
    .orderBy("lane_seq", "desc")
    .limit(most.stepsMax + 1)
    .execute();
  let bytes = 0;
  const ids: string[] = [];
  for (const { run_id, bytes: size } of sizes.slice(0, most.stepsMax)) {
    bytes += size;
    if (ids.length > 0 && bytes > most.bytesMax) break;
    ids.push(run_id);
  }
  if (ids.length === 0) return { runs: [], truncated: false };
  const runs = await RUNS.all(RUNS.rows(db).where("run_id", "in", ids));
  return { runs: runs.sort(byAcceptance), truncated: sizes.length > ids.length };
}

async function messagesOf(db: Db, runIds: readonly string[]): Promise<Map<string, RunMessages>> {
  const found = new Map<string, RunMessages>();
  if (runIds.length === 0) return found;
  const ends = await db
    .selectFrom("messages")
    .select((eb) => [
      "run_id",
      eb.fn.min("seq").as("first"),
      sql<number | null>`max(case when role = 'assistant' then seq end)`.as("last"),
    ])
    .where("run_id", "in", runIds)
    .where("role", "in", ["user", "assistant"])
    .groupBy("run_id")
    .execute();
  const wanted = ends.flatMap(({ first, last }) => (last === null ? [first] : [first, last]));
  if (wanted.length === 0) return found;
  const rows = await db
    .selectFrom("messages")
    .select(["seq", "id", "session_id as sessionId"])
    .where("seq", "in", wanted)
    .execute();
  const refs = new Map(rows.map(({ seq, ...ref }) => [seq, ref]));
  for (const { run_id, first, last } of ends) {
    const answer = last === null ? undefined : refs.get(last);
    found.set(run_id ?? "", optional({ input: refs.get(first), answer }));
  }
  return found;
}

async function sessionsOf(db: Db, keys: readonly string[]): Promise<Map<string, ChainSession>> {
  if (keys.length === 0) return new Map();
  const rows = await db
    .selectFrom("sessions")
    .select(["key", "session_id as sessionId", "kind", LABEL.as("label")])
    .where("key", "in", keys)
    .execute();
  return new Map(rows.map((row) => [row.key, withoutNulls<ChainSession>(row)]));
}

/** Reads one chain and all its rows. */
export async function readChain(
  db: Db,
  chainId: string,
  most: { stepsMax: number; bytesMax: number },
): Promise<WholeChain> {
  const { stepsMax } = most;
  const [head, { runs, truncated }, flows, refusals] = await Promise.all([
    HEADS.find(db, { chainId }),
    runsOf(db, chainId, most),
    flowsOfChain(db, chainId, stepsMax),
    refusalsOf(db, chainId, stepsMax),
  ]);
  const runIds = runs.map((run) => run.runId);
  const callIds = runs.flatMap((run) => run.callId ?? []);
  const keys = new Set([
    ...runs.map((run) => run.sessionKey),
    ...flows.flatMap((flow) => [flow.requesterKey, flow.targetKey]),
    ...refusals.flatMap((refusal) => [refusal.fromKey, refusal.toKey ?? []].flat()),
  ]);
  const [waits, receipts, deliveries, messages, sessions] = await Promise.all([
    waitsOfCalls(db, callIds),
    receiptsOf(db, runs),
    deliveriesOfRuns(db, runIds, stepsMax),
    messagesOf(db, runIds),
    sessionsOf(db, [...keys]),
  ]);
  return {
    ...optional({ head }),
    runs,
    flows: new Map(flows.map((flow) => [flow.flowId, flow])),
    waits: new Map(waits.map((wait) => [wait.callId, wait])),
    refusals,
    receipts,
    deliveries,
    messages,
    sessions,
    truncated: truncated || refusals.length === stepsMax,
  };
}
