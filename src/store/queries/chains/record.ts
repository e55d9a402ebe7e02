// Reads everything about one chain that is needed to run it again.

import { sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import type { Entry } from "../../../core/shapes/message.ts";
import type {
  ChainRecord,
  RecordedDelivery,
  RecordedEntry,
  RecordedRevision,
  RecordedSession,
} from "../../../core/shapes/record/chain.ts";
import type { RunInputs } from "../../../core/shapes/record/revision.ts";
import { isEnded, type Run } from "../../../core/shapes/run.ts";
import type { Session } from "../../../core/shapes/session.ts";
import { idParts } from "../../id-parts.ts";
import type { Db } from "../../sql.ts";
import { deliveriesOfRuns } from "../channels/deliveries.ts";
import { labelsOfChain } from "../labels.ts";
import { revisionsOf } from "../runs/revisions.ts";
import { runsOfChain } from "../runs/runs.ts";
import { jobWaitsOfRuns, waitsOfCalls } from "../runs/waits.ts";
import { ancestorsOf, getSession } from "../sessions/sessions.ts";
import { ENTRY_COLUMNS, readEntry } from "../transcripts/stored-entry.ts";
import { contextBefore } from "../transcripts/transcripts.ts";
import { flowsOfChain } from "./flows.ts";
import { refusalsOf } from "./refusals.ts";

/** Maximum number of rows of each kind, and maximum bytes of the entries. */
const ROWS_MAX = 20_000;
export const RECORD_BYTES_MAX = 64 * 1024 * 1024;

interface StoredEntry extends RecordedEntry {
  readonly seq: number;
  readonly sessionId: string;
}

const entriesIn = (db: Db) =>
  db.selectFrom("messages").select(["seq", "session_id", "session_key", "run_id", ...ENTRY_COLUMNS]);

/** Returns the entries of the chain's runs, and those that others wrote between them, in order. */
async function entriesOf(db: Db, runs: readonly Run[]): Promise<StoredEntry[] | "too large"> {
  const ids = runs.map(({ runId }) => runId);
  const runIds = new Set(ids);
  const found = new Map<number, StoredEntry>();
  let bytes = 0;
  const add = async (query: ReturnType<typeof entriesIn>): Promise<boolean> => {
    const size = sql<number>`coalesce(sum(length(entry_json)), 0)`.as("size");
    const { size: more } = await query.clearSelect().select(size).executeTakeFirstOrThrow();
    // Entries between the runs' own ones can be counted twice here, so they are counted again below.
    if (bytes + more > 2 * RECORD_BYTES_MAX) return false;
    for (const row of await query.execute()) {
      if (found.has(row.seq)) continue;
      bytes += row.entry_json.length;
      const runId = row.run_id !== null && runIds.has(row.run_id) ? row.run_id : undefined;
      const { seq, session_id: sessionId, session_key: sessionKey, created_at: at } = row;
      found.set(seq, { seq, sessionId, sessionKey, at, ...optional({ runId }), entry: readEntry(row) });
    }
    return bytes <= RECORD_BYTES_MAX;
  };
  for (const some of idParts(ids)) {
    if (!(await add(entriesIn(db).where("run_id", "in", some)))) return "too large";
  }
  for (const sessionId of new Set([...found.values()].map((one) => one.sessionId))) {
    const seqs = [...found.values()].filter((one) => one.sessionId === sessionId).map(({ seq }) => seq);
    const between = entriesIn(db)
      .where("session_id", "=", sessionId)
      .where("seq", ">", Math.min(...seqs))
      .where("seq", "<", Math.max(...seqs));
    if (!(await add(between))) return "too large";
  }
  return [...found.values()].sort((a, b) => a.seq - b.seq);
}

/** Returns the sessions with these keys, and the sessions that spawned them. */
async function sessionsOf(db: Db, keys: ReadonlySet<string>): Promise<Session[]> {
  const all = new Set(keys);
  for (const key of keys) for (const above of await ancestorsOf(db, key)) all.add(above);
  const found: Session[] = [];
  for (const key of all) {
    const session = await getSession(db, key);
    if (session !== undefined) found.push(session);
  }
  return found.sort((a, b) => a.createdAt - b.createdAt || (a.key < b.key ? -1 : 1));
}

/** Returns a session with the transcript that the chain used, and with its context before the chain. */
async function recordSession(
  db: Db,
  session: Session,
  { runs, entries }: { runs: readonly Run[]; entries: readonly StoredEntry[] },
): Promise<RecordedSession> {
  const own = runs.find(({ sessionKey }) => sessionKey === session.key);
  const { sessionId } = own ?? session;
  const first = entries.find((one) => one.sessionId === sessionId);
  const before: Entry[] = first === undefined ? [] : await contextBefore(db, sessionId, first.seq);
  return { session: { ...session, sessionId }, before };
}

async function revisionsOfRuns(db: Db, runs: readonly Run[]): Promise<RecordedRevision[]> {
  const parseRevisions = async (hashes: Iterable<string>): Promise<RecordedRevision[]> =>
    (await revisionsOf(db, [...new Set(hashes)])).map(({ hash, kind, body }) => {
      return { hash, kind, body: JSON.parse(body) as unknown };
    });
  const inputs = await parseRevisions(runs.flatMap(({ revision }) => revision ?? []));
  const parts = await parseRevisions(
    inputs.flatMap(({ body }) => {
      const { settings, tools, prompt } = body as RunInputs;
      return [settings, tools, ...prompt];
    }),
  );
  const tools = await parseRevisions(
    parts.flatMap(({ kind, body }) => (kind === "tools" ? (body as readonly string[]) : [])),
  );
  return [...inputs, ...parts, ...tools];
}

/** Returns the texts for people that these runs produced, in the order of the store. */
export async function deliveriesOf(db: Db, runIds: readonly string[]): Promise<RecordedDelivery[]> {
  const found: RecordedDelivery[] = [];
  for (const some of idParts(runIds)) {
    const rows = await deliveriesOfRuns(db, some, ROWS_MAX);
    for (const { sessionKey, runId, kind, route, text, state, createdAt } of rows.reverse()) {
      found.push({ sessionKey, ...optional({ runId }), kind, route, text, state, createdAt });
    }
  }
  return found;
}

/**
 * Returns the record of a chain, without the version of the program. Returns undefined if there is no such
 * chain, and a word if it has no record yet or none of a reasonable size.
 */
export async function readChainRecord(
  db: Db,
  chainId: string,
): Promise<Omit<ChainRecord, "program"> | "unfinished" | "too large" | undefined> {
  const runs = await runsOfChain(db, chainId, ROWS_MAX + 1);
  if (runs.length === 0) return undefined;
  if (runs.length > ROWS_MAX) return "too large";
  if (runs.some(({ state }) => !isEnded(state))) return "unfinished";
  const entries = await entriesOf(db, runs);
  if (entries === "too large") return entries;
  const flows = await flowsOfChain(db, chainId, ROWS_MAX);
  const refusals = await refusalsOf(db, chainId, ROWS_MAX);
  const keys = new Set([
    ...runs.map(({ sessionKey }) => sessionKey),
    ...flows.flatMap(({ requesterKey, targetKey }) => [requesterKey, targetKey]),
    ...refusals.flatMap(({ toKey }) => toKey ?? []),
  ]);
  const sessions: RecordedSession[] = [];
  for (const session of await sessionsOf(db, keys)) {
    sessions.push(await recordSession(db, session, { runs, entries }));
  }
  const runIds = runs.map(({ runId }) => runId);
  const waits = await waitsOfCalls(
    db,
    runs.flatMap(({ callId }) => callId ?? []),
  );
  return {
    chainId,
    runs: runs.map(({ owner: _, ...run }) => run),
    sessions,
    entries: entries.map(({ seq: _, sessionId: __, ...entry }) => entry),
    flows,
    waits: [...waits, ...(await jobWaitsOfRuns(db, runIds))].map(
      ({ callId, kind, targetId, waiterRunId, state, deadlineAt }) => ({
        callId,
        ...(kind === "job" ? { flowId: targetId } : {}),
        waiterRunId,
        state,
        deadlineAt,
      }),
    ),
    refusals,
    deliveries: await deliveriesOf(db, runIds),
    labels: (await labelsOfChain(db, chainId)) ?? {},
    revisions: await revisionsOfRuns(db, runs),
  };
}
