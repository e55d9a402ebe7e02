// Makes the first pass over a transcript: finds the entries of its final conversation. Entries form a tree,
// and the conversation is the path from the newest entry to the root; other branches were abandoned and are
// skipped. An entry `leaf` continues the conversation behind an older entry, and `reset` begins a new one. An
// entry whose parent is missing (because of a broken line or a cut file) follows the entry before it. Only
// positions are kept in memory, not content.

import { fieldsOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { type EntryPosition, entryPositionOf, readSourceEntry, timestampOf } from "../entries.ts";
import { type FileLine, parseForeign } from "../json-lines.ts";
import type { Remarks } from "../remarks.ts";

/** Maximum number of entries per transcript. */
const ENTRIES_MAX = 500_000;
/** Maximum number of JSON values per line. */
const VALUES_MAX = 500_000;

/** The stored entries of one session, each as a line of JSON. */
export interface Transcript {
  /** The name for remarks: a path in the source. */
  readonly name: string;
  /** Yields the same lines each time. Lines that are added later are left for another import. */
  lines(): AsyncIterable<FileLine> | Iterable<FileLine>;
  close(): Promise<void>;
}

export interface TranscriptPlan {
  /** Time of the first entry. */
  readonly startedAt?: number;
  /** Returns whether the entry on this line is part of the conversation. */
  includes(line: number): boolean;
  /**
   * Returns the name from which the id of the entry on this line is derived. The name is the same at every
   * import.
   */
  nameOf(line: number, id: string | undefined): string;
  /**
   * Returns the name of the first message that the compaction on this line kept, or undefined if that message
   * is not imported.
   */
  firstKept(line: number): string | undefined;
}

/** Data that are collected about the lines. A position is an index into these lists. */
interface Index {
  /** The line number at each position. */
  readonly lines: number[];
  /** For each position, that of the parent entry, or -1 if there is none. */
  readonly parents: number[];
  /**
   * For each position: 2 for a message that may start the model's context, 1 for another usable entry, 0 for
   * any other line.
   */
  readonly uses: number[];
  /** The name (`nameOf`) at each position. */
  readonly names: string[];
  /** For each id, the position of the first entry that has it. */
  readonly ids: Map<string, number>;
  readonly compactions: Map<number, string>;
  startedAt?: number;
}

/** Parses one line. A failure is reported once in `remarks`. */
export function parseLine(line: FileLine, where: string, remarks?: Remarks): unknown {
  const at = `${where}:${line.number}`;
  if (line.bytes === undefined) {
    remarks?.note("lines of transcripts that are too long", at);
    return undefined;
  }
  const parsed = parseForeign(line.bytes, VALUES_MAX);
  if (!parsed.ok) {
    const what = parsed.why === "broken" ? "are broken" : "hold too many values or levels";
    remarks?.note(`lines of transcripts that ${what}, skipped`, at);
    return undefined;
  }
  if (!parsed.isUtf8) remarks?.note("lines of transcripts with invalid UTF-8, read with \u{FFFD}", at);
  return parsed.value;
}

/** Returns the id of an entry, and that of the entry before it in the conversation. */
function placeOf(value: unknown): EntryPosition {
  const { type, targetId } = fieldsOf(value);
  const place = entryPositionOf(value);
  if (type === "reset") return { ...place, parentId: null };
  if (type !== "leaf" || targetId === undefined) return place;
  return { ...place, ...optional({ parentId: entryPositionOf({ parentId: targetId }).parentId }) };
}

function addEntry(
  index: Index,
  line: FileLine,
  value: unknown,
  now: number,
  where: string,
  remarks: Remarks,
): void {
  const entry = readSourceEntry(value, undefined);
  const at = timestampOf(value, now);
  if (index.startedAt === undefined && at !== undefined) index.startedAt = at;
  if (entry.kind === "header") return;
  if (entry.kind === "unknown")
    remarks.note(`transcripts: ${entry.what}, skipped`, `${where}:${line.number}`);
  const position = index.lines.length;
  const { id, parentId } = placeOf(value);
  const parent = typeof parentId === "string" ? index.ids.get(parentId) : undefined;
  if (typeof parentId === "string" && parent === undefined) {
    remarks.note(
      "transcript entries with a missing parent, joined to the entry before",
      `${where}:${line.number}`,
    );
  }
  index.lines.push(line.number);
  index.parents.push(parentId === null ? -1 : (parent ?? position - 1));
  const opens = entry.kind === "user" || entry.kind === "assistant";
  index.uses.push(entry.kind === "silent" || entry.kind === "unknown" ? 0 : opens ? 2 : 1);
  const isFirst = id !== undefined && !index.ids.has(id);
  index.names.push(isFirst ? id : `line ${line.number}`);
  if (isFirst) index.ids.set(id, position);
  if (entry.kind === "compaction" && entry.firstKept !== undefined) {
    index.compactions.set(position, entry.firstKept);
  }
}

/** Scans a transcript. Returns undefined if there are too many entries. */
export async function planTranscript(
  transcript: Transcript,
  now: number,
  remarks: Remarks,
): Promise<TranscriptPlan | undefined> {
  const index: Index = {
    lines: [],
    parents: [],
    uses: [],
    names: [],
    ids: new Map(),
    compactions: new Map(),
  };
  for await (const line of transcript.lines()) {
    const value = parseLine(line, transcript.name, remarks);
    if (value === undefined) continue;
    if (index.lines.length === ENTRIES_MAX) return undefined;
    addEntry(index, line, value, now, transcript.name, remarks);
  }
  // 1 for each position on the path from the newest entry to the root.
  const onPath = new Uint8Array(index.parents.length);
  // A parent always comes before its child in the list, so the loop ends.
  for (let at = index.parents.length - 1; at >= 0; at = index.parents[at] ?? -1) onPath[at] = 1;
  const included = new Set<number>();
  let elsewhere = 0;
  for (const [position, line] of index.lines.entries()) {
    if (index.uses[position] === 0) continue;
    if (onPath[position] === 1) included.add(line);
    else elsewhere += 1;
  }
  if (elsewhere > 0) {
    const what = "transcript entries on abandoned branches, or from before a reset, skipped";
    remarks.note(what, transcript.name, elsewhere);
  }
  return planOf(index, onPath, included);
}

/**
 * Returns for each position the next message on the path that is not a tool result, or -1 if there is none.
 */
function openersOf({ uses }: Index, onPath: Uint8Array): Int32Array {
  const openers = new Int32Array(uses.length);
  let next = -1;
  for (let at = uses.length - 1; at >= 0; at -= 1) {
    if (onPath[at] === 1 && uses[at] === 2) next = at;
    openers[at] = next;
  }
  return openers;
}

function planOf(index: Index, onPath: Uint8Array, included: ReadonlySet<number>): TranscriptPlan {
  const { lines, names, ids, compactions, startedAt } = index;
  const openers = openersOf(index, onPath);
  const kept = new Map<number, string>();
  for (const [position, firstKept] of compactions) {
    // The part that a compaction keeps must not begin with a tool result, because its call would be missing.
    const at = openers[ids.get(firstKept) ?? position] ?? -1;
    const [line, name] = [lines[position], names[at]];
    if (at >= 0 && at < position && line !== undefined && name !== undefined) kept.set(line, name);
  }
  return {
    ...optional({ startedAt }),
    includes: (line) => included.has(line),
    nameOf: (line, id) => {
      const first = id === undefined ? undefined : ids.get(id);
      return id !== undefined && first !== undefined && lines[first] === line ? id : `line ${line}`;
    },
    firstKept: (line) => kept.get(line),
  };
}
