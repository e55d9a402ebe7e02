// Lists the runs that a client of another protocol asked for, with those that changed last first. Leaves out
// runs of sessions that were deleted, or that the client's token does not cover (I9).

import { sql } from "kysely";
import type { Run, RunState } from "../../../core/shapes/run.ts";
import { countRows, type Db } from "../../sql.ts";
import { patternCondition } from "../sessions/session-scope.ts";
import { RUNS } from "./runs.ts";

export interface RunPlace {
  readonly changedAt: number;
  readonly runId: string;
}

export interface ClientRunFilter {
  readonly askedBy: string;
  /** Prefix of the keys of the sessions. */
  readonly keyPrefix: string;
  /** Patterns of the client's token. Absent: it covers every session. */
  readonly patterns?: readonly string[] | undefined;
  /** Only runs of this session. */
  readonly sessionKey?: string | undefined;
  readonly states?: readonly RunState[] | undefined;
  /** Only runs that ask their client something, or only others. */
  readonly isAsking?: boolean;
  /** Chains with open questions. Their runs with a hop, which gateways asked for, ask nothing. */
  readonly askingChainIds: readonly string[];
  /** Only runs that changed after this time. */
  readonly changedAfter?: number | undefined;
  /** Only runs that follow this place in the list. */
  readonly after?: RunPlace | undefined;
  readonly limit: number;
}

const CHANGED_AT = sql<number>`coalesce(ended_at, started_at, accepted_at)`;

/** Returns the place of a run in the list. */
export function findPlace({ endedAt, startedAt, acceptedAt, runId }: Run): RunPlace {
  return { changedAt: endedAt ?? startedAt ?? acceptedAt, runId };
}

function matching(db: Db, filter: ClientRunFilter) {
  const { askedBy, keyPrefix, patterns, sessionKey, states, isAsking, askingChainIds, changedAfter } = filter;
  let query = RUNS.rows(db, { askedBy }).where(({ exists, selectFrom }) =>
    exists(selectFrom("sessions as s").select("s.key").whereRef("s.key", "=", "runs.session_key")),
  );
  if (patterns !== undefined) query = query.where(patternCondition(db, sql`runs.session_key`, patterns));
  const next = String.fromCharCode(keyPrefix.charCodeAt(keyPrefix.length - 1) + 1);
  query =
    sessionKey === undefined
      ? query.where("session_key", ">=", keyPrefix).where("session_key", "<", keyPrefix.slice(0, -1) + next)
      : query.where("session_key", "=", sessionKey);
  // PostgreSQL refuses an empty list.
  const hasNone = isAsking === true && askingChainIds.length === 0;
  if (states?.length === 0 || hasNone) return query.where(sql<boolean>`1 = 0`);
  if (states !== undefined) query = query.where("state", "in", states);
  if (isAsking !== undefined && askingChainIds.length > 0)
    query = query.where(({ and, eb, not }) => {
      const asks = and([eb("chain_id", "in", askingChainIds), eb("hop", "=", 0)]);
      return isAsking ? asks : not(asks);
    });
  if (changedAfter !== undefined) query = query.where(CHANGED_AT, ">", changedAfter);
  return query;
}

/** Returns one page of the runs, and the number of all that match. */
export async function clientRuns(db: Db, filter: ClientRunFilter): Promise<{ runs: Run[]; total: number }> {
  const { after, limit } = filter;
  let query = matching(db, filter).orderBy(CHANGED_AT, "desc").orderBy("run_id", "desc");
  if (after !== undefined) {
    const { changedAt, runId } = after;
    query = query.where(({ or, and, eb }) =>
      or([eb(CHANGED_AT, "<", changedAt), and([eb(CHANGED_AT, "=", changedAt), eb("run_id", "<", runId)])]),
    );
  }
  return { runs: await RUNS.all(query.limit(limit)), total: await countRows(matching(db, filter)) };
}
