// Owns the first look at a transcript: which of its entries are the conversation, as it was left.
// TP1: entries form a tree, and the conversation is the way from its newest entry to the root: what stands
//      on other branches was taken back, and is left out.
// TP2: an entry whose parent is not there (a broken line, a cut file) follows the entry before it.
// TP3: of an entry only its place is kept, so that the memory it takes does not grow with what was said.

import type { FileHandle } from "node:fs/promises";
import { placeOf, readSourceEntry, timestampOf } from "./entries.ts";
import { type Line, linesOf, parseForeign } from "./json-lines.ts";
import type { Remarks } from "./remarks.ts";

/** Entries of one transcript. */
const ENTRIES_MAX = 500_000;
/** Values in one line of a transcript. */
const VALUES_MAX = 500_000;

export interface TranscriptPlan {
  /** So much of the file is read; what is written to it meanwhile is left for another import. */
  readonly size: number;
  /** When the first entry was written. */
  readonly startedAt?: number;
  /** Whether this line is part of the conversation. */
  includes(line: number): boolean;
  /** What this line is called in ids that are made of it: the same at every import. */
  nameOf(line: number, id: string | undefined): string;
  /** The name of the message that the compaction on this line kept first; none: nothing that is here. */
  firstKept(line: number): string | undefined;
}

/** What is kept of a line while the plan is made. */
interface Index {
  /** By position: the number of the line. */
  readonly lines: number[];
  /** By position: the position of the parent; -1: none. */
  readonly parents: number[];
  /** By position: 2 a message that may begin what the model sees, 1 another usable entry, 0 none. */
  readonly uses: number[];
  /** By position: what it is called. */
  readonly names: string[];
  /** Position of the first entry with this id. */
  readonly ids: Map<string, number>;
  readonly compactions: Map<number, string>;
  startedAt?: number;
}

/** One line as it could be parsed; what could not is noted once, by `remarks`. */
export function parseLine(line: Line, where: string, remarks?: Remarks): unknown {
  const at = `${where}:${line.number}`;
  if (line.bytes === undefined) {
    remarks?.note("lines of transcripts that are too long to be read", at);
    return undefined;
  }
  const parsed = parseForeign(line.bytes, VALUES_MAX);
  if (!parsed.ok) {
    const what = parsed.why === "broken" ? "are broken" : "hold too many values or levels";
    remarks?.note(`lines of transcripts that ${what}, left out`, at);
    return undefined;
  }
  if (!parsed.isUtf8)
    remarks?.note("lines of transcripts with bytes that are no UTF-8, read with \u{FFFD}", at);
  return parsed.value;
}

function addEntry(
  index: Index,
  line: Line,
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
    remarks.note(`transcripts: ${entry.what}, left out`, `${where}:${line.number}`);
  const position = index.lines.length;
  const { id, parentId } = placeOf(value);
  const parent = typeof parentId === "string" ? index.ids.get(parentId) : undefined;
  if (typeof parentId === "string" && parent === undefined) {
    remarks.note(
      "transcript entries whose parent is not there, joined to the one before",
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

/** Marks the way from the newest entry to the root. */
function pathOf(parents: readonly number[]): Uint8Array {
  const onPath = new Uint8Array(parents.length);
  // A parent stands before its child, so the way has an end.
  for (let at = parents.length - 1; at >= 0; at = parents[at] ?? -1) onPath[at] = 1;
  return onPath;
}

/** Looks through the first `size` bytes of a transcript. `undefined`: it has more entries than are read. */
export async function planTranscript(
  file: { readonly handle: FileHandle; readonly size: number; readonly name: string },
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
  for await (const line of linesOf(file.handle, file.size)) {
    const value = parseLine(line, file.name, remarks);
    if (value === undefined) continue;
    if (index.lines.length === ENTRIES_MAX) return undefined;
    addEntry(index, line, value, now, file.name, remarks);
  }
  const onPath = pathOf(index.parents);
  const included = new Set<number>();
  let elsewhere = 0;
  for (const [position, line] of index.lines.entries()) {
    if (index.uses[position] === 0) continue;
    if (onPath[position] === 1) included.add(line);
    else elsewhere += 1;
  }
  if (elsewhere > 0)
    remarks.note("transcript entries on branches that were left, left out", file.name, elsewhere);
  return planOf(index, onPath, included, file.size);
}

/** By position: the first message from there on that is on the way and no result; -1: none. */
function openersOf({ uses }: Index, onPath: Uint8Array): Int32Array {
  const openers = new Int32Array(uses.length);
  let next = -1;
  for (let at = uses.length - 1; at >= 0; at -= 1) {
    if (onPath[at] === 1 && uses[at] === 2) next = at;
    openers[at] = next;
  }
  return openers;
}

function planOf(
  index: Index,
  onPath: Uint8Array,
  included: ReadonlySet<number>,
  size: number,
): TranscriptPlan {
  const { lines, names, ids, compactions, startedAt } = index;
  const openers = openersOf(index, onPath);
  const kept = new Map<number, string>();
  for (const [position, firstKept] of compactions) {
    // A result never goes without its call.
    const at = openers[ids.get(firstKept) ?? position] ?? -1;
    const [line, name] = [lines[position], names[at]];
    if (at >= 0 && at < position && line !== undefined && name !== undefined) kept.set(line, name);
  }
  return {
    size,
    ...(startedAt === undefined ? {} : { startedAt }),
    includes: (line) => included.has(line),
    nameOf: (line, id) => {
      const first = id === undefined ? undefined : ids.get(id);
      return id !== undefined && first !== undefined && lines[first] === line ? id : `line ${line}`;
    },
    firstKept: (line) => kept.get(line),
  };
}
