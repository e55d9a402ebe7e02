// Owns the labels of sessions and chains (core/rules/labels/labels.ts), and the decisions that they led to.

import { type ExpressionBuilder, type RawBuilder, sql } from "kysely";
import { jsonOf, objectOf } from "../../core/json.ts";
import { joinLabels, withArrival } from "../../core/rules/labels/labels.ts";
import type { Arrival, LabelDecision, Labels } from "../../core/shapes/labels.ts";
import type { Run } from "../../core/shapes/run.ts";
import { held } from "../locks.ts";
import { prepared } from "../prepared.ts";
import { recordsOf } from "../records.ts";
import type { Tables } from "../schema/tables.ts";
import { type Db, isAmong, type Tx } from "../sql.ts";
import { RUNS } from "./runs/runs.ts";

export interface LabelPlace {
  readonly key: string;
  readonly sessionId: string;
  /** Absent: only the session is meant. */
  readonly chainId?: string | undefined;
}

const IN_PLACE = prepared(
  (_, { key, sessionId, chainId }: { key: string; sessionId: string; chainId: string }) => sql<{
    labels_json: string;
  }>`select labels_json from sessions
    where key = ${key} and session_id = ${sessionId} and labels_json is not null
    union all select labels_json from chains where chain_id = ${chainId} and labels_json is not null`,
);

/** Returns the labels of columns, joined. */
export function readLabelsJson(...columns: readonly (string | null | undefined)[]): Labels | undefined {
  let all: Labels | undefined;
  for (const json of new Set(columns))
    if (json !== null && json !== undefined) all = joinLabels(all, objectOf(jsonOf(json)) as Labels);
  return all;
}

/** Selects the labels of a transcript: those that a reset has kept, or those of the session that has it. */
export const transcriptLabels = (sessionId: RawBuilder<unknown> | string) => sql<string | null>`
  (select coalesce(i.labels_json, o.labels_json) from session_ids i
    left join sessions o on o.key = i.session_key
    where i.session_id = ${sessionId})`;

/** Returns the labels of a session and a chain, or undefined if they have none. */
export async function readLabels(db: Db, place: LabelPlace): Promise<Labels | undefined> {
  const { rows } = await IN_PLACE(db, { ...place, chainId: place.chainId ?? "" });
  return readLabelsJson(...rows.map((row) => row.labels_json));
}

/** Returns the labels of a chain. */
export const labelsOfChain = (db: Db, chainId: string | undefined): Promise<Labels | undefined> =>
  readLabels(db, { key: "", sessionId: "", chainId });

const RUN_IN_CHAIN = prepared((db, { runId }: { runId: string }) =>
  RUNS.rows(db, { runId })
    .leftJoin("chains", "chains.chain_id", "runs.chain_id")
    .select("chains.labels_json as labels_of_chain"),
);

/** A run with the labels of its chain. */
export interface RunInChain {
  readonly run: Run;
  readonly labels: Labels | undefined;
}

/** Returns a run with the labels of its chain. */
export async function getRunInChain(db: Db, runId: string): Promise<RunInChain | undefined> {
  const [row] = (await RUN_IN_CHAIN(db, { runId })).rows;
  return row && { run: RUNS.read(row), labels: readLabelsJson(row.labels_of_chain) };
}

/** Returns the labels of a chain, and those of sessions, by key. */
export async function labelsAround(
  db: Db,
  chainId: string,
  keys: readonly string[],
): Promise<{ readonly chain: Labels | undefined; readonly sessions: ReadonlyMap<string, Labels> }> {
  const marked = db
    .selectFrom("sessions")
    .select(["key", "labels_json"])
    .where("labels_json", "is not", null);
  const rows = await marked.where(isAmong(db, "key", keys)).execute();
  const sessions = new Map(rows.map(({ key, labels_json: json }) => [key, readLabelsJson(json) ?? {}]));
  return { chain: await labelsOfChain(db, chainId), sessions };
}

/** Adds labels to a session and a chain. */
export async function addLabels(tx: Tx, place: LabelPlace, labels: Labels, arrival: Arrival): Promise<void> {
  const added = withArrival(labels, arrival);
  const { key, sessionId, chainId } = place;
  const session = tx.selectFrom("sessions").select("labels_json").where("key", "=", key);
  const [ofSession] = await held(tx, session.where("session_id", "=", sessionId)).execute();
  const grown = (known: { readonly labels_json: string | null } | undefined): string | undefined => {
    if (known === undefined) return undefined;
    const before = readLabelsJson(known.labels_json);
    const after = joinLabels(before, added);
    return after === before ? undefined : JSON.stringify(after);
  };
  const sessionJson = grown(ofSession);
  if (sessionJson !== undefined)
    await tx.updateTable("sessions").set({ labels_json: sessionJson }).where("key", "=", key).execute();
  if (chainId === undefined) return;
  const chain = tx.selectFrom("chains").select("labels_json").where("chain_id", "=", chainId);
  const chainJson = grown(await held(tx, chain).executeTakeFirst());
  if (chainJson !== undefined)
    await tx.updateTable("chains").set({ labels_json: chainJson }).where("chain_id", "=", chainId).execute();
}

/** Removes the labels of a session, and of the chains whose unfinished runs it has. */
export async function removeLabels(tx: Tx, key: string): Promise<void> {
  await tx.updateTable("sessions").set({ labels_json: null }).where("key", "=", key).execute();
  const runs = tx.selectFrom("runs").select("chain_id").where("session_key", "=", key);
  const open = runs.where("ended_at", "is", null);
  await tx.updateTable("chains").set({ labels_json: null }).where("chain_id", "in", open).execute();
}

const DECISIONS = recordsOf<LabelDecision>()("label_decisions", {
  key: ["id"],
  columns: [
    "at",
    "session_key",
    "agent_id",
    "run_id",
    "chain_id",
    "sink",
    "destination",
    "payload",
    "labels_json",
    "decision",
    "decided_by",
  ],
  names: { decided_by: "by" },
});

/** Stores a decision. */
export const noteDecision = (tx: Tx, decision: LabelDecision): Promise<void> =>
  DECISIONS.insert(tx, decision);

/** The wanted decisions. */
export interface DecisionsWanted {
  readonly limit: number;
  readonly sessionKey?: string | undefined;
  readonly chainId?: string | undefined;
  /** ms since 1970. */
  readonly since?: number | undefined;
}

/** Returns decisions, newest first. */
export function listDecisions(db: Db, wanted: DecisionsWanted): Promise<LabelDecision[]> {
  const { limit, sessionKey, chainId, since } = wanted;
  let rows = DECISIONS.rows(db).orderBy("at", "desc").orderBy("id").limit(limit);
  if (sessionKey !== undefined) rows = rows.where("session_key", "=", sessionKey);
  if (chainId !== undefined) rows = rows.where("chain_id", "=", chainId);
  if (since !== undefined) rows = rows.where("at", ">=", since);
  return DECISIONS.all(rows);
}

/** A file that a run with outside content may have written, or a folder of such files. */
interface OutsideFile {
  readonly path: string;
  /** ms since 1970. */
  readonly notedAt: number;
}

const FILES = recordsOf<OutsideFile>()("outside_files", { key: ["path"], columns: ["noted_at"] });

/** Notes a file that a run with outside content may have written. */
export const noteOutsideFile = (tx: Tx, file: OutsideFile): Promise<void> => FILES.put(tx, file);

/** Forgets a file, because a run without outside content has written all of it. */
export const forgetOutsideFile = (tx: Tx, path: string) => FILES.remove(tx, { path });

type FileColumns = ExpressionBuilder<Tables, "outside_files">;

/** Matches the paths below a folder: `0` is the character after the slash. */
const below = (is: FileColumns, folder: string) =>
  is.and([is("path", ">=", `${folder}/`), is("path", "<", `${folder}0`)]);

/** Returns the noted paths that a reader of this path reads: it, those below it, and the folders above it. */
export async function outsideFilesAt(db: Db, path: string): Promise<string[]> {
  const parts = path.split("/");
  const above = parts.map((_, at) => parts.slice(0, at + 1).join("/")).filter((one) => one !== "");
  const files = db.selectFrom("outside_files").select("path");
  const rows = files.where((is) => is.or([is("path", "in", above), below(is, path)]));
  return (await rows.execute()).map((row) => row.path);
}
