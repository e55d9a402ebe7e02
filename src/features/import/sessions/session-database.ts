// Reads the database of one agent of the source: its sessions, and the entries of their transcripts.

import { zstdDecompressSync } from "node:zlib";
import { type ForeignDatabase, ForeignFileError } from "../../../store/foreign.ts";
import { openDatabase } from "../databases.ts";
import { type FileLine, LINE_BYTES_MAX, parseForeign } from "../json-lines.ts";
import type { Remarks } from "../remarks.ts";
import type { SourceDir } from "../source-dir.ts";
import { readEntries, type SourceSession } from "./source-sessions.ts";
import type { Transcript } from "./transcript-plan.ts";

/** Newest version of the layout that is known. */
const LAYOUT = 23;
const ENTRY_BYTES_MAX = 4 * 1024 * 1024;
const ENTRY_VALUES_MAX = 200_000;
const NODES_NEEDED = ["session_key", "entry_json"];
const EVENTS_NEEDED = ["session_id", "seq", "event_json"];

/** The sessions of an agent, and access to their transcripts until it is closed. */
export interface SessionDatabase {
  readonly sessions: readonly SourceSession[];
  /** Returns the transcript of a session, or undefined if it has no entries here. */
  transcript(sessionId: string): Transcript | undefined;
  close(): void;
}

const hasAll = (columns: ReadonlySet<string>, needed: readonly string[]): boolean =>
  needed.every((name) => columns.has(name));

/** Yields the key and the entry of each session. An entry that is not JSON becomes null. */
function* nodesOf(database: ForeignDatabase): Generator<readonly [string, unknown]> {
  const entry = `case when octet_length(entry_json) <= ${ENTRY_BYTES_MAX} then cast(entry_json as blob) end`;
  const query = `select substr(session_key, 1, 1000) as key, ${entry} as entry from session_nodes order by 1`;
  for (const { key, entry } of database.rows(query)) {
    const parsed =
      entry instanceof Uint8Array ? parseForeign(Buffer.from(entry), ENTRY_VALUES_MAX) : undefined;
    yield [String(key), parsed?.ok === true ? parsed.value : null];
  }
}

/** Returns the JSON of an event. Absent if it is too long or cannot be decompressed. */
function bytesOf(json: unknown, packed: unknown): Buffer | undefined {
  if (json instanceof Uint8Array) return Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  if (!(packed instanceof Uint8Array)) return undefined;
  try {
    return zstdDecompressSync(packed, { maxOutputLength: LINE_BYTES_MAX });
  } catch {
    return undefined;
  }
}

/** Yields the events of a session as lines. Their numbers count the events. */
function* linesOf(database: ForeignDatabase, sessionId: string, isPacked: boolean): Generator<FileLine> {
  const readColumn = (column: string): string =>
    `case when octet_length(${column}) <= ${LINE_BYTES_MAX} then cast(${column} as blob) end`;
  const columns = [
    `${readColumn("event_json")} as json`,
    `${isPacked ? readColumn("event_zstd") : "null"} as packed`,
  ];
  const query = `select ${columns} from transcript_events where session_id = ? order by seq`;
  let number = 0;
  for (const { json, packed } of database.rows(query, sessionId)) {
    number += 1;
    const bytes = bytesOf(json, packed);
    yield bytes === undefined ? { number } : { number, bytes };
  }
}

/** Reports transcripts that are not imported. */
function noteOthers(database: ForeignDatabase, name: string, remarks: Remarks): void {
  const count = (query: string): number => Number([...database.rows(query)][0]?.n ?? 0);
  const windows = database.columnsOf("session_windows");
  if (
    hasAll(windows, ["session_id"]) &&
    hasAll(database.columnsOf("session_nodes"), ["current_session_id"])
  ) {
    const current = "select current_session_id from session_nodes";
    const earlier = count(`select count(*) as n from session_windows where session_id not in (${current})`);
    if (earlier > 0)
      remarks.note("transcripts without a session (from before a reset), skipped", name, earlier);
  }
  if (hasAll(database.columnsOf("session_transcript_cold_archives"), ["session_id"])) {
    const cold = count("select count(*) as n from session_transcript_cold_archives");
    if (cold > 0) remarks.note("transcripts in cold storage, not read: restore them there first", name, cold);
  }
}

/** Opens the database at a path. Returns undefined if there is none that can be read, and reports this. */
export async function openSessions(
  source: SourceDir,
  path: readonly string[],
  nowMs: number,
  remarks: Remarks,
): Promise<SessionDatabase | undefined> {
  const database = await openDatabase(source, path, LAYOUT, remarks);
  if (database === undefined) return undefined;
  const name = path.join("/");
  const refuse = (why: string): undefined => {
    database.close();
    remarks.note(`databases that were not read: ${why}`, name);
    return undefined;
  };
  try {
    const events = database.columnsOf("transcript_events");
    if (!hasAll(database.columnsOf("session_nodes"), NODES_NEEDED) || !hasAll(events, EVENTS_NEEDED)) {
      return refuse("they do not have the tables of sessions");
    }
    const sessions = readEntries(nodesOf(database), name, nowMs, remarks);
    noteOthers(database, name, remarks);
    const isPacked = events.has("event_zstd");
    return {
      sessions,
      transcript(sessionId) {
        const first = "select 1 from transcript_events where session_id = ? limit 1";
        if ([...database.rows(first, sessionId)].length === 0) return undefined;
        const lines = () => linesOf(database, sessionId, isPacked);
        return { name: `${name}:${sessionId}`, lines, close: () => Promise.resolve() };
      },
      close: () => database.close(),
    };
  } catch (error) {
    if (error instanceof ForeignFileError) return refuse("damaged, or not a database");
    database.close();
    throw error;
  }
}
