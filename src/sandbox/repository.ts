// Protects the git repository of a workspace from sandboxed programs: they can read it, and write it only if
// the settings allow it. A program that can write `.git` can choose programs that the owner's next `git` runs
// outside of the sandbox: hooks, a pager, a file monitor. `.git/config` and `.git/commondir` are as powerful
// as a hook, so either all of `.git` is protected or nothing.
// RE1: existing files that control git (git-layout.ts) can't be written, moved or removed. Folders above them
// can be written, but not moved, because the files would move with them.
// RE2: a mount covers exactly the file that was checked. A parallel program may replace it by a link while
// the sandbox is built: the first process inside checks again, and starts nothing if the file differs.
// RE3: if a file that controls git cannot be protected, no program is started. This is the case for a file
// behind a link, and for a missing file whose nearest existing folder is the workspace itself.

import { lstat, realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { isInside } from "../world/folders.ts";
import { SEARCH_PATH } from "../world/programs.ts";
import { gitLayout } from "./git-layout.ts";
import type { SandboxNeeds } from "./sandbox.ts";

/** A workspace path that the sandbox bind-mounts onto the same path. */
export interface ProtectedPath {
  readonly path: string;
  readonly readOnly: boolean;
  /** Device and inode number of the path. */
  readonly identity: string;
}

const refuse = (text: string, hint: string) =>
  fail("sandbox_unavailable", text, {
    hint: `${hint}, or set sandbox.git to "write" for this agent.`,
  });

/**
 * Reads a path without following links. Returns undefined if it is missing, or neither a folder nor a file.
 */
async function hold(path: string, readOnly: boolean): Promise<ProtectedPath | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined || !(found.isDirectory() || found.isFile())) return undefined;
  return { path, readOnly, identity: `${found.dev}:${found.ino}` };
}

const foldersAbove = (workspace: string, path: string): string[] => {
  const above = dirname(path);
  return above === workspace || !isInside(workspace, above) ? [] : [...foldersAbove(workspace, above), above];
};

/** Returns the paths that a program may only read, and the folders above them. Outer folders come first. */
export async function guardedRepository(
  workspace: string,
  needs: Pick<SandboxNeeds, "git">,
): Promise<Result<readonly ProtectedPath[]>> {
  if (needs.git === "write") return ok([]);
  const { places, tooMuch } = await gitLayout(workspace);
  if (tooMuch) {
    return refuse(
      `the git repository of ${workspace} has too many worktrees or submodules to protect`,
      "Use fewer",
    );
  }
  const kept = new Set<string>();
  for (const place of places) {
    // Protecting the nearest existing folder prevents the path from being created.
    let there = place;
    while (there !== workspace && (await lstat(there).catch(() => undefined)) === undefined) {
      there = dirname(there);
    }
    if (there === workspace) {
      return refuse(`git would use ${place}, which does not exist`, "Create it (it may be empty)");
    }
    kept.add(there);
  }
  // A protected folder protects everything in it.
  const readOnly = [...kept].filter((path) => ![...kept].some((one) => one !== path && isInside(one, path)));
  const above = new Set(readOnly.flatMap((path) => foldersAbove(workspace, path)));
  const held: ProtectedPath[] = [];
  for (const path of [...above, ...readOnly].sort()) {
    const one = await hold(path, !above.has(path));
    if (one === undefined || (await realpath(path).catch(() => undefined)) !== path) {
      const error = `${path} is a link, or neither a folder nor a file, so it cannot be made read-only`;
      return refuse(error, "Replace it by a real one");
    }
    held.push(one);
  }
  return ok(held);
}

/** Formats a path as in /proc/self/mountinfo. */
const mountName = (path: string): string =>
  path.replaceAll(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);

/**
 * The first lines of the script that a sandbox's first process runs. They use the arguments of
 * `guardArguments` (RE2).
 */
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

export function guardArguments(held: readonly ProtectedPath[]): string[] {
  return [String(held.length), ...held.flatMap(({ path, identity }) => [path, mountName(path), identity])];
}
