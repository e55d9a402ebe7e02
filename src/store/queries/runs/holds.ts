// Owns the column `hold` of unfinished runs: a person lets a run stop before its next tool call. It is the id
// of the call before which the run has stopped, and empty until then. After a release without these calls,
// `SKIPS` is before it, until the run has read it. Null: nobody holds the run. The labels of everything that
// a run has read come with its hold, in one statement.

import { sql } from "kysely";
import type { Labels } from "../../../core/shapes/labels.ts";
import type { RunHold } from "../../../core/shapes/run.ts";
import { prepared } from "../../prepared.ts";
import { changesRows, type Db, isAmong, type Tx } from "../../sql.ts";
import { readLabelsJson } from "../labels.ts";
import { ACTIVE, HOLDING } from "./runs.ts";

const SKIPS = "skip ";

/** Returns the stage of a hold as readers see it. */
export function stageOf(hold: string | null | undefined): RunHold | undefined {
  if (hold === null || hold === undefined || hold.startsWith(SKIPS)) return undefined;
  return hold === "" ? "pending" : "held";
}

/** The content that a run has read. */
export interface RunContent {
  /** Of its session and its chain. */
  readonly labels: Labels | undefined;
  /** Whether any file is noted as outside. */
  readonly hasOutsideFiles: boolean;
}

const BEFORE_CALLS = prepared((db, { runId }: { runId: string }) =>
  db
    .selectFrom("runs")
    .leftJoin("sessions", (join) =>
      join.onRef("key", "=", "session_key").onRef("sessions.session_id", "=", "runs.session_id"),
    )
    .leftJoin("chains", "chains.chain_id", "runs.chain_id")
    .select(["hold", "sessions.labels_json as of_session", "chains.labels_json as of_chain"])
    .select(({ exists, selectFrom }) => exists(selectFrom("outside_files").select("path")).as("has_files"))
    .where("run_id", "=", runId),
);

/** The stored hold of a run. `callId`: empty before the run has stopped. */
interface Hold {
  readonly callId: string;
  readonly skips: boolean;
}

/** Returns what a run must know before its next tool calls. Its hold is absent if nobody holds it. */
export async function readBeforeCalls(
  db: Db,
  runId: string,
): Promise<{ readonly hold: Hold | undefined; readonly content: RunContent }> {
  const [row] = (await BEFORE_CALLS(db, { runId })).rows;
  const content = {
    labels: readLabelsJson(row?.of_session, row?.of_chain),
    hasOutsideFiles: Boolean(row?.has_files),
  };
  const hold = row?.hold;
  if (hold === null || hold === undefined) return { hold: undefined, content };
  const skips = hold.startsWith(SKIPS);
  return { hold: { callId: skips ? hold.slice(SKIPS.length) : hold, skips }, content };
}

/** `skip`: releases a run, which does not make the calls before which it stops. */
export type HoldChange = "hold" | "release" | "skip";

/** Changes the hold of an unfinished turn. Returns false if it is held, or released, already. */
export function changeHold(tx: Tx, runId: string, change: HoldChange, at: number): Promise<boolean> {
  const turn = tx
    .updateTable("runs")
    .where("run_id", "=", runId)
    .where("kind", "=", "turn")
    .where("state", "in", ACTIVE);
  if (change === "hold") return changesRows(tx, turn.set({ hold: "" }).where("hold", "is", null));
  const hold = change === "release" ? null : sql<string>`${sql.lit(SKIPS)} || hold`;
  const held_ms = sql<number>`held_ms + coalesce(${at} - held_at, 0)`;
  const released = turn.set({ hold, held_ms, held_at: null });
  return changesRows(tx, released.where("hold", "not like", sql.lit(`${SKIPS}%`)));
}

/**
 * Notes that a run has stopped, if it was not released meanwhile. `callId`: the call before which it has
 * stopped, or empty if the call may have begun.
 */
export async function noteStopped(tx: Tx, runId: string, callId: string, at: number): Promise<void> {
  await tx
    .updateTable("runs")
    .set({ hold: callId, held_at: at })
    .where("run_id", "=", runId)
    .where("hold", "=", "")
    .where("held_at", "is", null)
    .execute();
}

/** Returns whether a run stands still, and how long it has stood still before. */
export async function readStandstill(db: Db, runId: string): Promise<{ isHeld: boolean; heldMs: number }> {
  const row = await db
    .selectFrom("runs")
    .select(["held_at", "held_ms"])
    .where("run_id", "=", runId)
    .executeTakeFirst();
  return { isHeld: (row?.held_at ?? null) !== null, heldMs: row?.held_ms ?? 0 };
}

/** Notes that a run has read its hold. */
export async function clearHold(tx: Tx, runId: string): Promise<void> {
  await tx.updateTable("runs").set({ hold: null }).where("run_id", "=", runId).execute();
}

/** Returns which of these sessions have a turn that a person holds, with the stage. */
export async function holdsOf(db: Db, sessionKeys: readonly string[]): Promise<ReadonlyMap<string, RunHold>> {
  if (sessionKeys.length === 0) return new Map();
  const rows = await db
    .selectFrom("runs")
    .select(["session_key", "hold"])
    .where(isAmong(db, "session_key", sessionKeys))
    .where("state", "in", HOLDING)
    .where("hold", "is not", null)
    .execute();
  return new Map(
    rows.flatMap(({ session_key, hold }) => {
      const stage = stageOf(hold);
      return stage === undefined ? [] : [[session_key, stage] as const];
    }),
  );
}
