// Copies the files of a source's workspace into the workspace of an agent, and reads its memory.
// WC1: links are neither followed nor copied, on either side, and no file is overwritten. The folder `.git`
//      is left out, because its settings can run programs.

import { createWriteStream, type Stats } from "node:fs";
import { lstat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { MEMORY_MAX_BYTES } from "../../../core/rules/prompt/memory.ts";
import { ensureFolder } from "../../../world/folders.ts";
import { readWhole, type SourceDir } from "../source-dir.ts";

const FILES_MAX = 20_000;
const LEVELS_MAX = 32;
const BYTES_MAX = 1024 ** 3;
const NOTES_MAX = 1_000;

/** The files of a workspace, as paths in segments. */
export interface FileList {
  readonly files: readonly (readonly string[])[];
  /** Links, other special files, and folders `.git`. */
  readonly left: readonly string[];
  /** True if there are more files or levels than an import copies. */
  readonly isTooLarge: boolean;
}

export async function listFiles(dir: SourceDir): Promise<FileList> {
  const files: string[][] = [];
  const left: string[] = [];
  let isTooLarge = false;
  const read = async (folder: readonly string[]): Promise<void> => {
    for (const { name, kind } of await dir.list(folder)) {
      const path = [...folder, name];
      if (files.length >= FILES_MAX || path.length > LEVELS_MAX) isTooLarge = true;
      if (isTooLarge) return;
      if (kind === "file") files.push(path);
      else if (kind === "folder" && name !== ".git") await read(path);
      else left.push(path.join("/"));
    }
  };
  await read([]);
  return { files, left, isTooLarge };
}

const statusOf = (path: string): Promise<Stats | undefined> => lstat(path).catch(() => undefined);

/** Returns the files that are not in a folder yet. */
export async function missingIn(target: string, { files }: FileList): Promise<(readonly string[])[]> {
  const missing: (readonly string[])[] = [];
  for (const path of files) if ((await statusOf(join(target, ...path))) === undefined) missing.push(path);
  return missing;
}

/** Returns whether a file can be made at this path of a folder: nothing is there, and no link on the way. */
async function isFree(root: string, path: readonly string[]): Promise<boolean> {
  for (let parts = 1; parts < path.length; parts += 1) {
    const status = await statusOf(join(root, ...path.slice(0, parts)));
    if (status !== undefined && !status.isDirectory()) return false;
  }
  return (await statusOf(join(root, ...path))) === undefined;
}

/** Copies files into a folder, which is created if needed. Returns the number of copied ones. */
export async function copyFiles(
  dir: SourceDir,
  files: readonly (readonly string[])[],
  target: string,
): Promise<number> {
  let [copied, bytes] = [0, 0];
  for (const path of files) {
    if (!(await isFree(target, path))) continue;
    const to = join(target, ...path);
    await ensureFolder(dirname(to));
    const opened = await dir.open(path);
    if (opened.kind !== "file") continue;
    const { size } = opened;
    await using handle = opened.handle;
    bytes += size;
    if (bytes > BYTES_MAX) break;
    const mode = 0o600 | ((await handle.stat()).mode & 0o100);
    await pipeline(
      handle.createReadStream({ autoClose: false }),
      createWriteStream(to, { flags: "wx", mode }),
    );
    copied += 1;
  }
  return copied;
}

export interface SourceMemory {
  readonly text: string;
  /** Names of the files in the text. */
  readonly files: readonly string[];
  /** Names of the files for which there is no room. */
  readonly left: readonly string[];
}

/** Returns MEMORY.md and the newest files of `memory`, as far as an agent's memory has room for them. */
export async function readSourceMemory(dir: SourceDir): Promise<SourceMemory> {
  const notes = (await dir.list(["memory"])).filter(
    ({ name, kind }) => kind === "file" && /\.md$/i.test(name),
  );
  const newest = notes.toReversed().slice(0, NOTES_MAX);
  const paths = [["MEMORY.md"], ["memory.md"], ...newest.map(({ name }) => ["memory", name])];
  const parts: string[] = [];
  const [files, left]: [string[], string[]] = [[], []];
  for (const path of paths) {
    const bytes = await readWhole(dir, path, 4 * MEMORY_MAX_BYTES);
    const text = typeof bytes === "string" || bytes.includes(0) ? "" : bytes.toString("utf8").trim();
    if (text === "") continue;
    const name = path.join("/");
    const part = path.length === 1 ? text : `## ${name}\n\n${text}`;
    const fits = Buffer.byteLength([...parts, part].join("\n\n")) <= MEMORY_MAX_BYTES;
    (fits ? files : left).push(name);
    if (fits) parts.push(part);
  }
  return { text: parts.join("\n\n"), files, left };
}
