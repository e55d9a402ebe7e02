// Names the files of a workspace that calls read, and notes which ones runs with outside content wrote.
// OF1: a file that `write` or `edit` wrote is outside until a run without outside content writes all of it.
// OF2: a command may write any file of its workspace: those that changed while it ran are outside. A command
//      that reads such a file has outside content from then on.
// OF3: a command that only reads named files reads those. Any other one reads the whole workspace, but the
//      files that came with messages only if it names them or searches.

import { readdir, realpath, stat } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { hasPlainNames, readNames } from "../../core/rules/approval/named-files.ts";
import type { ToolCallRequest } from "../../core/shapes/tool.ts";
import { cut } from "../../core/text/cut.ts";
import type { Engine } from "../../engine/engine.ts";
import { forgetOutsideFile, noteOutsideFile, outsideFilesAt } from "../../store/queries/labels.ts";
import type { Db } from "../../store/sql.ts";
import { isInside } from "../../world/folders.ts";

/** Names of a command that are looked up. */
const NAMES_MAX = 200;
/** Entries of a workspace that are looked at after a command. */
const ENTRIES_MAX = 20_000;
const CHANGED_MAX = 1_000;
const PATH_MAX_CHARS = 200;
/** Clocks of file systems are coarse. */
const COARSE_MS = 1_000;

/** Folder of the files that came with messages and tasks, in a workspace. */
const ATTACHMENTS = join(".parley", "attachments");
/** Commands that may read all files below a folder. */
const SEARCHES = /[*?]|\.parley|\b(?:find|grep|rg|ag|tar|zip|rsync|cp)\b/;

/** Commands of which each part begins with such a program only read the files that they name. */
const READERS: ReadonlySet<string> = new Set([
  ...["cat", "head", "tail", "less", "more", "nl", "wc", "ls", "stat", "file", "diff", "cmp", "sort", "uniq"],
  ...["cut", "tr", "jq", "grep", "sed", "awk", "echo", "printf", "pwd", "cd", "true"],
]);

/** The part of a call that says which files it reads and writes. */
type FileCall = Pick<ToolCallRequest, "name" | "arguments">;

interface FilesContext {
  readonly agent: { readonly workspace: string };
  readonly engine: Pick<Engine, "commit" | "now">;
}

const isThere = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined)) !== undefined;

const realOf = (path: string): Promise<string> => realpath(path).catch(() => path);

/** Returns the path that a call names, without links. */
async function pathIn(workspace: string, path: unknown): Promise<string> {
  return realOf(resolve(workspace, typeof path === "string" ? path : "."));
}

/** Returns the source of a private text in a file of the workspace, by its real path. */
export async function fileSource(workspace: string, path: unknown): Promise<string> {
  const root = await realOf(workspace);
  const real = await pathIn(root, path);
  if (!isInside(root, real)) return "file outside the workspace";
  return `file ${cut(relative(root, real), PATH_MAX_CHARS) || "of the workspace"}`;
}

/** Returns the files below a folder that changed since a time, or the folder itself if there are many. */
async function changedSince(folder: string, since: number): Promise<readonly string[]> {
  const changed: string[] = [];
  const folders = [folder];
  let seen = 0;
  for (const one of folders) {
    for (const entry of await readdir(one, { withFileTypes: true }).catch(() => [])) {
      seen += 1;
      if (seen > ENTRIES_MAX || changed.length > CHANGED_MAX) return [folder];
      const path = join(one, entry.name);
      if (entry.isDirectory()) folders.push(path);
      const found = entry.isFile() ? await stat(path).catch(() => undefined) : undefined;
      if (found !== undefined && found.ctimeMs >= since) changed.push(path);
    }
  }
  return changed;
}

/** Notes a file, or a folder with all its files, that a run with outside content wrote. */
export async function noteWritten({ engine }: FilesContext, path: string): Promise<void> {
  const real = await realOf(path);
  await engine.commit(({ tx, now }) => noteOutsideFile(tx, { path: real, notedAt: now }));
}

/** Notes the files that a call of a writing tool may have written since `from`. */
export async function noteWriting(
  { agent, engine }: FilesContext,
  call: FileCall,
  { from, isOutside }: { readonly from: number; readonly isOutside: boolean },
): Promise<void> {
  const workspace = await realOf(agent.workspace);
  if (call.name === "exec" && !isOutside) return;
  const paths =
    call.name === "exec"
      ? await changedSince(workspace, from - COARSE_MS)
      : [await pathIn(workspace, call.arguments.path)];
  if (paths.length === 0 || (!isOutside && call.name !== "write")) return;
  await engine.commit(async ({ tx, now }) => {
    for (const path of paths)
      await (isOutside ? noteOutsideFile(tx, { path, notedAt: now }) : forgetOutsideFile(tx, path));
  });
}

/** Returns the names that a command reads, or undefined if it may read everything. */
function namesIn(command: string): readonly string[] | undefined {
  if (!hasPlainNames(command)) return undefined;
  const parts = command.split(/[;|&\n]+/).map((part) => part.trim().split(/\s+/)[0] ?? "");
  if (!parts.filter((word) => word !== "").every((word) => READERS.has(word))) return undefined;
  return readNames(command).slice(0, NAMES_MAX);
}

/** Returns the paths that a call reads. */
async function readBy(workspace: string, { name, arguments: args }: FileCall): Promise<readonly string[]> {
  if (name !== "exec") return [await pathIn(workspace, args.path)];
  const names = namesIn(String(args.command));
  const paths = await Promise.all((names ?? ["."]).map((one) => pathIn(workspace, one)));
  const there = await Promise.all(paths.map(isThere));
  const read = paths.filter((_, at) => there[at] === true);
  // A search that names no file reads the working folder.
  return read.length > 0 || names?.includes("grep") !== true ? read : [workspace];
}

/** Returns the source of outside content in the files that a call reads, or undefined if they have none. */
export async function outsideFileRead(
  db: Db,
  { agent }: Pick<FilesContext, "agent">,
  call: FileCall,
): Promise<string | undefined> {
  const workspace = await realOf(agent.workspace);
  const isSearch = call.name !== "exec" || SEARCHES.test(String(call.arguments.command));
  for (const path of await readBy(workspace, call)) {
    for (const noted of await outsideFilesAt(db, path))
      if ((isSearch || !isInside(join(workspace, ATTACHMENTS), noted)) && (await isThere(noted)))
        return `file ${cut(relative(workspace, noted), PATH_MAX_CHARS) || "of the workspace"}`;
  }
  return undefined;
}
