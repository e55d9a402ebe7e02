// Checks on the disk that a line which may run without a question stays inside the workspace.
// FL1: each of its paths resolves, links included, to something inside the workspace, or to nothing.
// FL2: git is free only in a repository with a harmless configuration (GC1 of free.ts), whose folder
//      `.git` is a real one, borrows nothing from other places, and has no links: git shows parts of a file
//      that it can't read.
// A program that a sandboxed session runs at the same moment can replace a file by a link after this check.

import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type FreeLine, findGitRisk } from "../core/rules/approval/free.ts";
import { quoted } from "../core/text/cut.ts";
import { resolvePath } from "./files/workspace.ts";

const GIT_FILES_MAX = 10_000;
const GIT_CONFIG_MAX_BYTES = 64 * 1024;
const SHOWN_MAX_CHARS = 80;
/** Files of git that name other places. */
const BORROWING = ["commondir", "objects/info/alternates"];
/** Folders with objects only, which git checks by their digests. */
const OBJECTS = /\/objects\/[0-9a-f]{2}$/;

/** Returns whether all of a folder is plain files and folders. Counts them. */
async function isPlain(folder: string, counted: { files: number }): Promise<boolean> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    counted.files += 1;
    if (counted.files > GIT_FILES_MAX) return false;
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) {
      if (!entry.isFile()) return false;
    } else if (!OBJECTS.test(path) && !(await isPlain(path, counted))) return false;
  }
  return true;
}

/** Returns why git is not free in a workspace, or undefined (FL2). */
async function whyNotGit(workspace: string): Promise<string | undefined> {
  const git = join(workspace, ".git");
  const isThere = (path: string): Promise<boolean> =>
    lstat(path).then(
      () => true,
      () => false,
    );
  try {
    if (!(await lstat(git)).isDirectory()) return "the folder .git of the workspace is elsewhere";
    if (!(await isPlain(git, { files: 0 }))) return "the folder .git has links, or very many files";
    for (const file of BORROWING) if (await isThere(join(git, file))) return `git uses .git/${file}`;
    const config = await readFile(join(git, "config"), "utf8");
    if (config.length > GIT_CONFIG_MAX_BYTES) return "the file .git/config is long";
    const risk = findGitRisk(config);
    return risk && `git has a setting that is not on the list: ${quoted(risk.trim(), SHOWN_MAX_CHARS)}`;
  } catch {
    return "the workspace has no git repository of its own";
  }
}

/** Returns why a person has to approve a line after all, or undefined if it is free (FL1, FL2). */
export async function whyNotFree(workspace: string, line: FreeLine): Promise<string | undefined> {
  for (const path of line.paths) {
    const resolved = await resolvePath(workspace, path, { createFolders: false });
    if (!resolved.ok && resolved.code !== "file_not_found")
      return `${quoted(path, SHOWN_MAX_CHARS)} may be outside of the workspace: ${resolved.error}`;
  }
  return line.usesGit ? whyNotGit(workspace) : undefined;
}
