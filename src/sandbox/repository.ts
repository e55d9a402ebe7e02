// Owns what a contained program may do to the git repository of its workspace: read it, unless the settings
// let it write. Whoever writes `.git` says what any later `git` of the owner runs, outside every sandbox:
// hooks, a pager, a monitor of files. Of these `.git/config` and `.git/commondir` are as good as a hook, so
// it is all of `.git` or nothing.
// RE1: a `.git` that is there when a program starts can be neither written, moved nor put away by it.
// RE2: what is put over it is that very thing. A program that runs beside may swap it for a link while the
//      sandbox is built: the first process inside looks again, and starts nothing where it finds another.

import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { fail, ok, type Result } from "../core/errors.ts";
import { SEARCH_PATH } from "../world/programs.ts";
import type { SandboxNeeds } from "./sandbox.ts";

export interface Repository {
  /** `.git` of the workspace: a folder, or a file that says where it is. */
  readonly path: string;
  /** Its device and inode number. */
  readonly identity: string;
}

/** The repository that a program may only read; undefined: there is none. */
export async function guardedRepository(
  workspace: string,
  needs: Pick<SandboxNeeds, "git">,
): Promise<Result<Repository | undefined>> {
  if (needs.git === "write") return ok(undefined);
  const path = join(workspace, ".git");
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return ok(undefined);
  if (found.isDirectory() || found.isFile()) return ok({ path, identity: `${found.dev}:${found.ino}` });
  return fail(
    "sandbox_unavailable",
    `${path} is neither a folder nor a file, so it can't be made read-only`,
    {
      hint: 'Put a real .git in its place, or set sandbox.git to "write" for this agent.',
    },
  );
}

/** As /proc/self/mountinfo writes a path. */
const mountName = (path: string): string =>
  path.replaceAll(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);

/** The first lines of a sandbox's first process; they take its first three arguments (RE2). */
export const REPOSITORY_GUARD = [
  'if [ -n "$1" ]; then',
  "  over=",
  '  while read -r _ _ _ _ at _; do if [ "$at" = "$2" ]; then over=1; fi; done < /proc/self/mountinfo',
  `  if [ -z "$over" ] || [ "$(PATH="${SEARCH_PATH}:$PATH" stat -c %d:%i -- "$1")" != "$3" ]; then`,
  '    echo "sandbox: $1 was changed while it was being made read-only" >&2; exit 1',
  "  fi",
  "fi",
  "shift 3",
].join("\n");

/** The arguments of `REPOSITORY_GUARD`. */
export function guardArguments(repository: Repository | undefined): string[] {
  if (repository === undefined) return ["", "", ""];
  return [repository.path, mountName(repository.path), repository.identity];
}
