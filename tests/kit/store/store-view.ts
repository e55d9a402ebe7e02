// Reads a store from outside the gateway: unfinished work, and the transcripts of sessions.

import { textOf } from "../../../src/core/shapes/message.ts";
import type { Run } from "../../../src/core/shapes/run.ts";
import { listRuns } from "../../../src/store/queries/runs/runs.ts";
import { readHistory } from "../../../src/store/queries/transcripts/transcripts.ts";
import type { Db } from "../../../src/store/sql.ts";
import { PATIENCE_MS, until } from "../until.ts";

const ROWS_MAX = 500;

/** Returns true if all runs have ended. */
export async function hasNoRuns(db: Db): Promise<boolean> {
  const active = ["queued", "running", "waiting"];
  const run = await db.selectFrom("runs").select("run_id").where("state", "in", active).executeTakeFirst();
  return run === undefined;
}

/** Returns true if all runs, flows and deliveries have ended. */
export async function isQuiet(db: Db): Promise<boolean> {
  if (!(await hasNoRuns(db))) return false;
  const flow = await db.selectFrom("flows").select("flow_id").where("state", "=", "open").executeTakeFirst();
  const pending = db.selectFrom("deliveries").select("id").where("state", "=", "pending");
  return flow === undefined && (await pending.executeTakeFirst()) === undefined;
}

/** Resolves when `isSo` returns true, by default when all work has ended. */
export async function untilQuiet(db: Db, isSo: (db: Db) => Promise<boolean> = isQuiet): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  await until(async () => {
    if (await isSo(db)) return true;
    if (Date.now() > deadline) throw new Error("work is left that nobody does");
    return false;
  });
}

/** Returns a transcript, one line for each message. */
export async function linesOf(db: Db, sessionId: string): Promise<string[]> {
  const page = await readHistory(db, { sessionId, limit: ROWS_MAX, includeTools: true });
  if (!page.ok) throw new Error(page.error);
  return page.value.messages.map((message) => `${message.role}: ${textOf(message)}`);
}

/** Returns the runs of a session, oldest first. */
export async function runsOf(db: Db, sessionKey: string): Promise<Run[]> {
  return (await listRuns(db, { sessionKey, limit: ROWS_MAX })).reverse();
}
