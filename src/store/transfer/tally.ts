// Counts the content of a store for reports to people.

import { sql } from "kysely";
import type { Db } from "../sql.ts";

export interface Tally {
  readonly sessions: number;
  readonly messages: number;
  readonly runs: number;
  /** Accepted runs that have not ended. The next gateway on this store continues them. */
  readonly unfinishedRuns: number;
  /** Texts that the next gateway on this store will send. */
  readonly pendingDeliveries: number;
}

export async function tallyOf(db: Db): Promise<Tally> {
  const { rows } = await sql<Tally>`select
    (select count(*) from sessions) as "sessions",
    (select count(*) from messages) as "messages",
    (select count(*) from runs) as "runs",
    (select count(*) from runs where state in ('queued', 'running', 'waiting')) as "unfinishedRuns",
    (select count(*) from deliveries where state = 'pending') as "pendingDeliveries"`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error("the count query returned no row");
  return { ...row };
}
