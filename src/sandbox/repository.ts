// Owns what a contained program may do to the git repository of its workspace: read it, unless the settings
// let it write. Whoever writes `.git` says what any later `git` of the owner runs, outside every sandbox:
// hooks, a pager, a monitor of files. Of these `.git/config` and `.git/commondir` are as good as a hook, so
// it is all of `.git` or nothing.
// RE1: what git obeys here and is there when a program starts (git-layout.ts) can be neither written, moved
//      nor put away by it. The folders above it can be written, not moved: else it would move with them.
// RE2: what is put over a path is that very thing. A program that runs beside may swap it for a link while
//      the sandbox is built: the first process inside looks again, and starts nothing where it finds another.
// RE3: what git would obey and is not there, or lies behind a link, can't be kept: no program is started.

import { lstat, realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { fail, ok, type Result } from "../core/errors.ts";
import { isInside } from "../world/folders.ts";
import { SEARCH_PATH } from "../world/programs.ts";
import { gitLayout } from "./git-layout.ts";
import type { SandboxNeeds } from "./sandbox.ts";

/** A path of the workspace that a sandbox holds in its place. */
export interface Held {
  readonly path: string;
  readonly readOnly: boolean;
  /** Its device and inode number. */
  readonly identity: string;
}

const refuse = (text: string, hint: string) =>
  fail("sandbox_unavailable", text, {
    hint: `${hint}, or set sandbox.git to "write" for this agent.`,
  });

/** Follows no link. Undefined: there is nothing, or something that is neither a folder nor a file. */
async function hold(path: string, readOnly: boolean): Promise<Held | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined || !(found.isDirectory() || found.isFile())) return undefined;
  return { path, readOnly, identity: `${found.dev}:${found.ino}` };
}

/** The path, or the nearest folder above it that is there: while that is kept, nobody can make the path. */
async function firstThere(workspace: string, path: string): Promise<string> {
  let there = path;
  while (there !== workspace && (await lstat(there).catch(() => undefined)) === undefined) {
    there = dirname(there);
  }
  return there;
}

const foldersAbove = (workspace: string, path: string): string[] => {
  const above = dirname(path);
  return above === workspace || !isInside(workspace, above) ? [] : [...foldersAbove(workspace, above), above];
};

/** The paths that a program may only read, and the folders above them, outer folders first. */
export async function guardedRepository(
  workspace: string,
  needs: Pick<SandboxNeeds, "git">,
): Promise<Result<readonly Held[]>> {
  if (needs.git === "write") return ok([]);
  const { places, tooMuch } = await gitLayout(workspace);
  if (tooMuch) {
    return refuse(
      `the git repository of ${workspace} has too many worktrees or submodules to guard`,
      "Use fewer",
    );
  }
  const kept = new Set<string>();
  for (const place of places) {
    const there = await firstThere(workspace, place);
    if (there === workspace) {
      return refuse(`git would obey ${place}, which is not there`, "Make it (it may be empty)");
    }
    kept.add(there);
  }
  // A protected folder protects all that lies in it.
  const inKept = (path: string): boolean => [...kept].some((one) => one !== path && isInside(one, path));
  const readOnly = [...kept].filter((path) => !inKept(path));
  const above = new Set(readOnly.flatMap((path) => foldersAbove(workspace, path)));
  const held: Held[] = [];
  for (const path of [...above, ...readOnly].sort()) {
    const one = await hold(path, !above.has(path));
    if (one === undefined || (await realpath(path).catch(() => undefined)) !== path) {
      const error = `${path} is a link, or neither a folder nor a file, so it can't be made read-only`;
      return refuse(error, "Put a real one in its place");
    }
    held.push(one);
  }
  return ok(held);
}

/** As /proc/self/mountinfo writes a path. */
const mountName = (path: string): string =>
  path.replaceAll(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);

/** The first lines of a sandbox's first process; they take the arguments of `guardArguments` (RE2). */
export const REPOSITORY_GUARD = [
  "left=$1; shift",
  'while [ "$left" -gt 0 ]; do',
  "  over=",
  '  while read -r _ _ _ _ at _; do if [ "$at" = "$2" ]; then over=1; fi; done < /proc/self/mountinfo',
  `  if [ -z "$over" ] || [ "$(PATH="${SEARCH_PATH}:$PATH" stat -c %d:%i -- "$1")" != "$3" ]; then`,
  '    echo "sandbox: $1 was changed while it was being made read-only" >&2; exit 1',
  "  fi",
  "  shift 3; left=$((left - 1))",
  "done",
].join("\n");

export function guardArguments(held: readonly Held[]): string[] {
  return [String(held.length), ...held.flatMap(({ path, identity }) => [path, mountName(path), identity])];
}
