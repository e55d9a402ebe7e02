// Implements read, write and edit of a workspace's files, in the gateway or in a sandbox
// (file-worker.ts). workspace.ts decides which paths are allowed. A result that leaves something out says how
// to get the rest. A text is returned exactly as in the file, so that a part of it can be passed to `edit`.
// F3: git's own files are never written (`.git`, the directory that it points to, hooks). Otherwise an agent
//     that may write files but run nothing could make the user's next git command run a program.

import { type FileHandle, realpath } from "node:fs/promises";
import { relative } from "node:path";
import type { ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { imageTypeOf } from "../../core/shapes/picture.ts";
import { EDITS_MAX, FILE_LINES_MAX, FILE_TEXT_MAX_BYTES } from "../../core/shapes/tool.ts";
import type { Engine } from "../../engine/engine.ts";
import { gitLayout } from "../../sandbox/git-layout.ts";
import { isInside } from "../../world/folders.ts";
import type { CallerContext } from "../tool.ts";
import { fileFailure, openToRead, replaceFile, resolvePath, type WorkspacePath } from "./workspace.ts";

/** Size above which lines are no longer counted; `totalLines` is then absent. */
const READ_COUNT_MAX_BYTES = 64 * 1024 * 1024;
const READ_CHUNK_BYTES = 64 * 1024;
export const IMAGE_MAX_BYTES = 3 * 1024 * 1024;
const WRITE_MAX_BYTES = 10 * 1024 * 1024;
const EDIT_MAX_BYTES = 10 * 1024 * 1024;

/** The parts of a tool call that an operation needs. */
export interface FileContext {
  readonly agent: Pick<CallerContext["agent"], "workspace">;
  readonly signal: AbortSignal;
  readonly engine: Pick<Engine, "newId">;
}

type ReadResult = Extract<ToolResultOf<"read">, { readonly text: string }>;
type PictureResult = Exclude<ToolResultOf<"read">, ReadResult>;
type WriteResult = ToolResultOf<"write">;
type EditResult = ToolResultOf<"edit">;

const NEWLINE = 10;

/** The requested lines as bytes, and data about the rest of the file. */
interface Window {
  readonly bytes: Buffer;
  readonly lines: number;
  /** Number of lines in the file; undefined if the file is too large to count. */
  readonly totalLines: number | undefined;
  /** True if the byte limit was reached before the line limit. */
  readonly cutInBytes: boolean;
  readonly binary: boolean;
}

/** Reads lines from `from` on in chunks, so that neither a large file nor a long line fills the memory. */
async function readWindow(
  handle: FileHandle,
  from: number,
  limit: number,
  signal: AbortSignal,
): Promise<Window> {
  const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES);
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let line = 1;
  let scanned = 0;
  let last = NEWLINE;
  let binary = false;
  let counted = true;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, scanned);
    if (bytesRead === 0) break;
    if (scanned === 0) binary = chunk.subarray(0, Math.min(bytesRead, 8_192)).includes(0);
    scanned += bytesRead;
    last = chunk[bytesRead - 1] ?? NEWLINE;
    const startsAt = line;
    line += countNewlines(chunk.subarray(0, bytesRead));
    const wanted = startsAt < from + limit && line >= from && keptBytes <= FILE_TEXT_MAX_BYTES;
    if (wanted) {
      const piece = Buffer.from(linesOf(chunk.subarray(0, bytesRead), startsAt, from, limit));
      kept.push(piece);
      keptBytes += piece.length;
    }
    counted = scanned <= READ_COUNT_MAX_BYTES;
    if (binary || (!counted && (line >= from + limit || keptBytes > FILE_TEXT_MAX_BYTES))) break;
  }
  const { bytes, cutInBytes } = cutToBytes(Buffer.concat(kept));
  const lines = countNewlines(bytes) + (bytes.length > 0 && bytes.at(-1) !== NEWLINE ? 1 : 0);
  const totalLines = counted ? line - 1 + (last === NEWLINE ? 0 : 1) : undefined;
  return { bytes, lines, totalLines, cutInBytes, binary: binary || bytes.includes(0) };
}

function countNewlines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}

/**
 * Returns the part of a chunk that belongs to lines `from` to `from + limit - 1`. The chunk begins in line
 * `startsAt`.
 */
function linesOf(chunk: Buffer, startsAt: number, from: number, limit: number): Buffer {
  let start = startsAt >= from ? 0 : chunk.length;
  let line = startsAt;
  for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) {
    line += 1;
    if (line === from) start = at + 1;
    if (line === from + limit) return chunk.subarray(Math.min(start, at + 1), at + 1);
  }
  return chunk.subarray(start);
}

/**
 * Cuts after the last line that fits. If the first line is too long, cuts inside it, between two characters.
 */
function cutToBytes(bytes: Buffer): { bytes: Buffer; cutInBytes: boolean } {
  if (bytes.length <= FILE_TEXT_MAX_BYTES) return { bytes, cutInBytes: false };
  const wholeLines = bytes.lastIndexOf(NEWLINE, FILE_TEXT_MAX_BYTES - 1) + 1;
  let end = wholeLines > 0 ? wholeLines : FILE_TEXT_MAX_BYTES;
  while (wholeLines === 0 && end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return { bytes: bytes.subarray(0, end), cutInBytes: true };
}

const decode = (bytes: Buffer, keepMark: boolean): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: keepMark }).decode(bytes);
  } catch {
    return undefined;
  }
};

async function readPicture(
  handle: FileHandle,
  place: WorkspacePath,
  size: number,
): Promise<Result<PictureResult> | undefined> {
  const head = Buffer.alloc(12);
  await handle.read(head, 0, head.length, 0);
  const mimeType = imageTypeOf(head);
  if (mimeType === undefined) return undefined;
  if (size > IMAGE_MAX_BYTES) {
    const error = `${place.shown} is a picture of ${size} bytes; the limit is ${IMAGE_MAX_BYTES}`;
    return fail("too_large", error, { hint: "Make it smaller first, with exec." });
  }
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await handle.read(bytes, 0, size, 0);
  const data = bytes.subarray(0, bytesRead).toString("base64");
  const images = [{ type: "image" as const, data, mimeType }];
  return ok({ status: "ok", path: place.shown, mimeType, bytes: bytesRead, images });
}

/** Reads a whole number of at least 1, or returns a failure. */
function countFrom(value: unknown, name: string, unset: number): Result<number> {
  if (value === undefined) return ok(unset);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return ok(value);
  return fail("invalid_argument", `${name} must be a whole number of at least 1, got ${String(value)}`);
}

async function read(
  ctx: FileContext,
  args: Record<string, unknown>,
): Promise<Result<ReadResult | PictureResult>> {
  const from = countFrom(args.offset, "offset", 1);
  if (!from.ok) return from;
  const limit = countFrom(args.limit, "limit", FILE_LINES_MAX);
  if (!limit.ok) return limit;
  const place = await resolvePath(ctx.agent.workspace, String(args.path), { createFolders: false });
  if (!place.ok) return place;
  const handle = await openToRead(place.value);
  if (!handle.ok) return handle;
  await using file = handle.value;
  try {
    const { size } = await file.stat();
    const picture = await readPicture(file, place.value, size);
    if (picture !== undefined) return picture;
    const lineLimit = Math.min(limit.value, FILE_LINES_MAX);
    const window = await readWindow(file, from.value, lineLimit, ctx.signal);
    return showWindow(window, place.value, from.value, limit.value);
  } catch (error) {
    return ctx.signal.aborted ? failAborted(place.value.shown) : fileFailure(error, place.value.shown);
  }
}

const failAborted = (shown: string): Failure => fail("run_aborted", `${shown}: the run was aborted`);

function showWindow(window: Window, place: WorkspacePath, from: number, asked: number): Result<ReadResult> {
  const { totalLines, lines } = window;
  const text = window.binary ? undefined : decode(window.bytes, false);
  if (text === undefined) {
    const error = `${place.shown} is not UTF-8 text`;
    return fail("file_problem", error, { hint: "Look at it with exec, e.g. file or xxd." });
  }
  if (lines === 0 && from > 1) {
    const length = totalLines === undefined ? "fewer" : totalLines;
    const error = `offset ${from} is past the end: ${place.shown} has ${length} lines`;
    return fail("invalid_argument", error);
  }
  const shown = { status: "ok", path: place.shown, text, fromLine: from, lines } as const;
  const result = { ...shown, ...optional({ totalLines }) };
  const toLine = from + lines - 1;
  const inLine = window.cutInBytes && !window.bytes.includes(NEWLINE);
  if (inLine) {
    const limit = `Line ${from} is longer than ${FILE_TEXT_MAX_BYTES} bytes and was cut there`;
    return ok({ ...result, truncated: true, note: `${limit}; use exec to see the rest.` });
  }
  if (window.cutInBytes || (lines >= FILE_LINES_MAX && asked > lines && toLine !== totalLines)) {
    const reason = window.cutInBytes ? `${FILE_TEXT_MAX_BYTES} bytes` : `${FILE_LINES_MAX} lines`;
    const note = `Cut after line ${toLine} (limit: ${reason}). Continue with offset ${toLine + 1}.`;
    return ok({ ...result, truncated: true, note });
  }
  if (totalLines !== undefined && toLine >= totalLines) return ok(result);
  return ok({ ...result, note: `More lines follow. Continue with offset ${toLine + 1}.` });
}

/** Returns a failure if a text argument can't be written unchanged. */
function checkText(value: unknown, name: string): Failure | undefined {
  const text = String(value);
  if (!text.isWellFormed())
    return fail("invalid_argument", `${name} holds half a character (a lone surrogate)`);
  const bytes = Buffer.byteLength(text);
  if (bytes <= WRITE_MAX_BYTES) return undefined;
  return fail("too_large", `${name} is ${bytes} bytes; the limit is ${WRITE_MAX_BYTES}`);
}

const isOfGit = (path: string): boolean => path.split(/[/\\]/).some((part) => part.toLowerCase() === ".git");

/** Resolves a path for writing. Refuses git's own files, even if a link leads to them (F3). */
async function pathToWrite(
  ctx: FileContext,
  path: string,
  createFolders: boolean,
): Promise<Result<WorkspacePath>> {
  const { workspace } = ctx.agent;
  const refused = fail(
    "file_problem",
    `${JSON.stringify(path)} is one of git's own files, which this tool does not write`,
    {
      hint: "Change it with git itself, through exec.",
    },
  );
  if (isOfGit(path)) return refused;
  const place = await resolvePath(workspace, path, { createFolders });
  if (!place.ok) return place;
  const root = await realpath(workspace);
  const { places } = await gitLayout(root);
  const { real } = place.value;
  return isOfGit(relative(root, real)) || places.some((one) => isInside(one, real)) ? refused : place;
}

async function write(ctx: FileContext, args: Record<string, unknown>): Promise<Result<WriteResult>> {
  const problem = checkText(args.content, "content");
  if (problem !== undefined) return problem;
  if (ctx.signal.aborted) return failAborted(String(args.path));
  const place = await pathToWrite(ctx, String(args.path), true);
  if (!place.ok) return place;
  const content = String(args.content);
  const written = await replaceFile(place.value, content, ctx.engine.newId());
  if (!written.ok) return written;
  const created = place.value.found === "nothing";
  return ok({ status: "ok", path: place.value.shown, bytes: Buffer.byteLength(content), created });
}

async function readWhole(place: WorkspacePath): Promise<Result<string>> {
  const handle = await openToRead(place);
  if (!handle.ok) return handle;
  await using file = handle.value;
  try {
    const { size } = await file.stat();
    if (size > EDIT_MAX_BYTES) {
      return fail("too_large", `${place.shown} is ${size} bytes; edit takes up to ${EDIT_MAX_BYTES}`);
    }
    const bytes = await file.readFile();
    const text = bytes.includes(0) ? undefined : decode(bytes, true);
    return text === undefined ? fail("file_problem", `${place.shown} is not UTF-8 text`) : ok(text);
  } catch (error) {
    return fileFailure(error, place.shown);
  }
}

/**
 * Returns the positions of `part` in `text`. Overlapping positions count, because each would be a different
 * edit.
 */
function positionsOf(text: string, part: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) places.push(at);
  return places;
}

const lineAt = (text: string, index: number): number => text.slice(0, index).split("\n").length;

interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

/** An edit at its position in the text. */
interface Hunk extends Edit {
  readonly at: number;
  readonly name: string;
}

/** Finds the only occurrence of an edit's old text. */
function hunkOf(text: string, { oldText, newText }: Edit, name: string, shown: string): Result<Hunk> {
  const places = positionsOf(text, oldText);
  const [at] = places;
  if (at === undefined) {
    const windows = text.includes("\r\n") && oldText.includes("\n") && !oldText.includes("\r\n");
    if (windows) {
      // The file has CRLF line ends, and the model wrote the same lines with LF.
      const [old, now] = [oldText.replaceAll("\n", "\r\n"), newText.replaceAll(/\r?\n/g, "\r\n")];
      return hunkOf(text, { oldText: old, newText: now }, name, shown);
    }
    const hint = "Read the file and give oldText exactly as in the file, with spaces and line ends.";
    return fail("invalid_argument", `${name}.oldText was found 0 times in ${shown}`, { hint });
  }
  if (places.length > 1) {
    const lines = places.slice(0, 10).map((index) => lineAt(text, index));
    const error = `${name}.oldText was found ${places.length} times in ${shown}`;
    return fail("invalid_argument", `${error}, at lines ${lines.join(", ")}`, {
      hint: "Include more of the surrounding text, so that it is found once.",
    });
  }
  return ok({ at, oldText, newText, name });
}

/** Applies all edits to one text, or none. Each old text is looked up in the text before all edits. */
function applyEdits(text: string, edits: readonly Edit[], shown: string): Result<[string, number[]]> {
  const hunks: Hunk[] = [];
  for (const [index, edit] of edits.entries()) {
    const hunk = hunkOf(text, edit, `edits[${index}]`, shown);
    if (!hunk.ok) return hunk;
    hunks.push(hunk.value);
  }
  const inOrder = hunks.toSorted((one, other) => one.at - other.at);
  const starts = new Map<Hunk, number>();
  let [after, end] = ["", 0];
  for (const [index, hunk] of inOrder.entries()) {
    if (hunk.at < end) {
      const error = `${inOrder[index - 1]?.name} and ${hunk.name} overlap in ${shown}`;
      return fail("invalid_argument", error, { hint: "Join them to one edit." });
    }
    after += text.slice(end, hunk.at);
    starts.set(hunk, after.length);
    after += hunk.newText;
    end = hunk.at + hunk.oldText.length;
  }
  after += text.slice(end);
  return ok([after, hunks.map((hunk) => lineAt(after, starts.get(hunk) ?? 0))]);
}

function checkEdits(edits: readonly Edit[]): Failure | undefined {
  if (edits.length === 0 || edits.length > EDITS_MAX)
    return fail("invalid_argument", `edits must have 1 to ${EDITS_MAX} items, got ${edits.length}`);
  for (const [index, { oldText, newText }] of edits.entries()) {
    const problem = checkText(newText, `edits[${index}].newText`);
    if (problem !== undefined) return problem;
    if (oldText === "") {
      return fail("invalid_argument", `edits[${index}].oldText must not be empty`, {
        hint: "Use the write tool to create a file.",
      });
    }
    if (oldText === newText) {
      const error = `edits[${index}]: oldText and newText are the same: nothing to do`;
      return fail("invalid_argument", error);
    }
  }
  return undefined;
}

async function edit(ctx: FileContext, args: Record<string, unknown>): Promise<Result<EditResult>> {
  const edits = args.edits as readonly Edit[];
  const problem = checkEdits(edits);
  if (problem !== undefined) return problem;
  const place = await pathToWrite(ctx, String(args.path), false);
  if (!place.ok) return place;
  const before = await readWhole(place.value);
  if (!before.ok) return before;
  const after = applyEdits(before.value, edits, place.value.shown);
  if (!after.ok) return after;
  const [text, lines] = after.value;
  const tooLarge = checkText(text, "the edited file");
  if (tooLarge !== undefined) return tooLarge;
  if (ctx.signal.aborted) return failAborted(place.value.shown);
  const written = await replaceFile(place.value, text, ctx.engine.newId());
  if (!written.ok) return written;
  return ok({ status: "ok", path: place.value.shown, lines });
}

/** A whole file, with its path as results show it. */
export interface TakenFile {
  readonly path: string;
  /** Base64. */
  readonly content: string;
}

/** Reads a whole file of any kind, of at most `maxBytes`. */
export async function take(ctx: FileContext, args: Record<string, unknown>): Promise<Result<TakenFile>> {
  const { path, maxBytes } = args as { path: string; maxBytes: number };
  const place = await resolvePath(ctx.agent.workspace, path, { createFolders: false });
  if (!place.ok) return place;
  const handle = await openToRead(place.value);
  if (!handle.ok) return handle;
  await using file = handle.value;
  const { shown } = place.value;
  try {
    const { size } = await file.stat();
    if (size === 0) return fail("file_problem", `${shown} is empty`);
    if (size > maxBytes) {
      const error = `${shown} has ${size} bytes; the limit is ${maxBytes} (tools.send_file.maxBytes)`;
      return fail("too_large", error, { hint: "Make it smaller first, with exec." });
    }
    const bytes = Buffer.alloc(size);
    const { bytesRead } = await file.read(bytes, 0, size, 0);
    return ok({ path: shown, content: bytes.subarray(0, bytesRead).toString("base64") });
  } catch (error) {
    return fileFailure(error, shown);
  }
}

export const FILE_OPERATIONS = { read, write, edit } as const;

export type FileOperation = keyof typeof FILE_OPERATIONS;
