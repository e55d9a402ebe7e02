// Reads the part of the source that is shared by its agents: scheduled jobs, people that were paired, and
// paired devices. Newer versions keep it in a database, older ones in JSON files.

import { createHash } from "node:crypto";
import { fieldsOf, listOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { idIn } from "../../core/rules/inbound-policy.ts";
import { type ForeignDatabase, ForeignFileError } from "../../store/foreign.ts";
import { NODES_MAX, type NodeRow, nodeFacts } from "../nodes/node.ts";
import { openDatabase } from "./databases.ts";
import { lineIn, textIn, textsIn, timeIn } from "./fields.ts";
import { parseForeign } from "./json-lines.ts";
import type { Remarks } from "./remarks.ts";
import { readWhole, type SourceDir, UNREAD_WORDS } from "./source-dir.ts";

const DATABASE = ["state", "openclaw.sqlite"];
/** Newest version of the layout that is known. */
const LAYOUT = 18;
const JOBS_FILE = ["cron", "jobs.json"];
const FILE_BYTES_MAX = 16 * 1024 * 1024;
const VALUE_BYTES_MAX = 1024 * 1024;
const VALUES_MAX = 200_000;
const ROWS_MAX = 5_000;
/** Channels whose bots the import takes over. */
const CHANNELS = ["telegram", "discord"];

/** A person who may write directly to an account. */
export interface SourcePerson {
  readonly channel: string;
  readonly accountId: string;
  readonly peerId: string;
  readonly pairedAt: number;
}

export interface SourceState {
  /** Jobs as the source describes them. */
  readonly jobs: readonly unknown[];
  readonly people: readonly SourcePerson[];
  readonly nodes: readonly NodeRow[];
}

/** Returns an expression for a text or JSON column, or null if the column is missing or a value too large. */
function column(columns: ReadonlySet<string>, name: string): string {
  return columns.has(name)
    ? `case when octet_length(${name}) <= ${VALUE_BYTES_MAX} then ${name} end as ${name}`
    : `null as ${name}`;
}

function jsonIn(value: unknown): unknown {
  const parsed = typeof value === "string" ? parseForeign(Buffer.from(value), VALUES_MAX) : undefined;
  return parsed?.ok === true ? parsed.value : undefined;
}

/** The rows of one table, of which only these columns are read. */
function* table(database: ForeignDatabase, name: string, wanted: readonly string[], remarks: Remarks) {
  const known = database.columnsOf(name);
  if (wanted.every((column) => !known.has(column))) return;
  const columns = wanted.map((one) => column(known, one));
  let rows = 0;
  for (const row of database.rows(`select ${columns} from ${name} limit ${ROWS_MAX + 1}`)) {
    rows += 1;
    if (rows > ROWS_MAX) return remarks.note(`rows of ${name} beyond the first ${ROWS_MAX}, skipped`);
    yield row;
  }
}

function jobsIn(database: ForeignDatabase, remarks: Remarks): unknown[] {
  const notes = [...table(database, "cron_job_scratch", ["job_id", "content"], remarks)];
  const scratches = new Map(notes.map(({ job_id, content }) => [job_id, content]));
  return [...table(database, "cron_jobs", ["job_id", "job_json", "enabled"], remarks)].map(
    ({ job_id, job_json }) => {
      const job = fieldsOf(jsonIn(job_json));
      if (Object.keys(job).length === 0) return { name: job_id };
      return { id: job_id, ...job, scratch: scratches.get(job_id) };
    },
  );
}

function peopleIn(database: ForeignDatabase, nowMs: number, remarks: Remarks): SourcePerson[] {
  for (const row of table(database, "current_conversation_bindings", ["target_session_key"], remarks))
    remarks.note(
      "chats that are bound to a session, which must be bound again",
      String(row.target_session_key),
    );
  const people = new Map<string, SourcePerson>();
  const columns = ["channel_key", "account_id", "entry", "updated_at"];
  for (const row of table(database, "channel_pairing_allow_entries", columns, remarks)) {
    const channel = textIn(row.channel_key, 64)?.toLowerCase() ?? "";
    const accountId = lineIn(row.account_id, 128) ?? "default";
    const peerId = idIn(lineIn(row.entry, 200) ?? "", channel).replace(/^tg:/i, "");
    if (!CHANNELS.includes(channel)) {
      remarks.note("paired people of channels that are not imported", channel);
    } else if (/^\d{1,32}$/.test(peerId)) {
      const person = { channel, accountId, peerId, pairedAt: timeIn(row.updated_at, nowMs) ?? nowMs };
      people.set(JSON.stringify([channel, accountId, peerId]), person);
    } else remarks.note("paired people without a numeric id, skipped", `${channel}:${accountId}`);
  }
  const open = [...table(database, "channel_pairing_requests", ["channel_key"], remarks)].length;
  if (open > 0) remarks.note("open requests for pairing, which must be made again", undefined, open);
  return [...people.values()];
}

const DEVICE = (
  "device_id public_key display_name operator_label platform role roles_json node_surface_json " +
  "approved_at_ms last_seen_at_ms"
).split(" ");

function nodesIn(database: ForeignDatabase, nowMs: number, remarks: Remarks): NodeRow[] {
  const nodes: NodeRow[] = [];
  for (const row of table(database, "device_pairing_paired", DEVICE, remarks)) {
    const id = textIn(row.device_id, 100) ?? "";
    const name = lineIn(row.operator_label, 64) ?? lineIn(row.display_name, 64) ?? id.slice(0, 12);
    const roles = [...textsIn(jsonIn(row.roles_json)), textIn(row.role, 40)];
    if (!roles.includes("node")) {
      remarks.note("paired devices of operators, which must be paired again", name);
      continue;
    }
    // The key must belong to the device's id.
    const key = Buffer.from(textIn(row.public_key, 200) ?? "", "base64url");
    const isOwn = key.length === 32 && createHash("sha256").update(key).digest("hex") === id;
    const publicKey = isOwn ? key.toString("base64url") : undefined;
    if (publicKey === undefined || nodes.length === NODES_MAX) {
      remarks.note("paired nodes without a valid key, or beyond the maximum, skipped", name);
      continue;
    }
    const surface = fieldsOf(jsonIn(row.node_surface_json));
    const platform = textIn(row.platform, 64);
    const facts = { caps: textsIn(surface.caps), commands: textsIn(surface.commands) };
    const version = textIn(surface.version, 64);
    const lastSeenAt = timeIn(row.last_seen_at_ms, nowMs);
    nodes.push({
      ...nodeFacts({ name, platform, version, ...facts }),
      ...{ id, publicKey, pairedAt: timeIn(row.approved_at_ms, nowMs) ?? nowMs },
      ...optional({ lastSeenAt }),
    });
  }
  return nodes;
}

/** Returns the jobs in the file of older versions. */
async function jobsInFile(source: SourceDir, remarks: Remarks): Promise<readonly unknown[]> {
  const bytes = await readWhole(source, JOBS_FILE, FILE_BYTES_MAX);
  if (bytes === "absent") return [];
  const parsed = typeof bytes === "string" ? undefined : parseForeign(bytes, VALUES_MAX);
  if (parsed?.ok === true) return listOf(fieldsOf(parsed.value).jobs);
  const why = typeof bytes === "string" ? UNREAD_WORDS[bytes] : "not JSON";
  remarks.note(`lists of jobs that were not read: ${why}`, JOBS_FILE.join("/"));
  return [];
}

/** Reads the shared state. A part that is missing is empty; one that cannot be read is reported, too. */
export async function readSourceState(
  source: SourceDir,
  nowMs: number,
  remarks: Remarks,
): Promise<SourceState> {
  const inFile = await jobsInFile(source, remarks);
  const nothing = { jobs: inFile, people: [], nodes: [] };
  const database = await openDatabase(source, DATABASE, LAYOUT, remarks);
  if (database === undefined) return nothing;
  const read = <T>(work: () => readonly T[]): readonly T[] => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof ForeignFileError)) throw error;
      remarks.note("databases that were read in part only, because they are damaged", DATABASE.join("/"));
      return [];
    }
  };
  try {
    return {
      jobs: [...read(() => jobsIn(database, remarks)), ...inFile],
      people: read(() => peopleIn(database, nowMs, remarks)),
      nodes: read(() => nodesIn(database, nowMs, remarks)),
    };
  } finally {
    database.close();
  }
}
