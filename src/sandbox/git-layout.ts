// Finds the files that control git in a workspace: its real directory, the hooks that its configuration
// names, and the same for worktrees and submodules.
// `.git` may be a file that names the directory (`gitdir: ./.bare`), as in a worktree or a submodule; that
// directory may name another one (`commondir`).
// Only plain files of limited size and number are read, because a sandboxed program may have written them.

import { constants } from "node:fs";
import { lstat, open, readdir, readFile, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { isInside } from "../world/folders.ts";

const FILE_MAX_BYTES = 1024 * 1024;
/** Maximum number of repositories and configuration files that are examined for one workspace. */
const LOOKS_MAX = 1_000;
const MODULES_DEPTH_MAX = 6;

interface GitLayout {
  /** Absolute paths in the workspace: git directories, files that name them, hook folders, included files. */
  readonly places: readonly string[];
  /** True if the limit was reached. */
  readonly tooMuch: boolean;
}

interface Setting {
  /**
   * The setting's name, for example `core.hookspath` or `submodule.a/b.path`: section and name are in lower
   * case.
   */
  readonly key: string;
  readonly value: string;
}

/** Returns the settings of a git file, in order. Lines that git rejects are left out. */
function gitSettings(text: string): Setting[] {
  const settings: Setting[] = [];
  let section = "";
  for (const line of text.replaceAll(/\\\r?\n/g, "").split(/\r?\n/)) {
    const header = /^\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\](.*)$/.exec(line);
    if (header !== null) {
      const [, name = "", sub] = header;
      section = name.toLowerCase() + (sub === undefined ? "" : `.${sub.replaceAll(/\\(.)/g, "$1")}`);
    }
    const rest = header?.[3] ?? line;
    const [, name, value] = /^\s*([A-Za-z][\w-]*)\s*=(.*)$/.exec(rest) ?? [];
    if (name !== undefined)
      settings.push({ key: `${section}.${name.toLowerCase()}`, value: plain(value ?? "") });
  }
  return settings;
}

/** Returns a value without its quotes, escapes and comment. */
function plain(raw: string): string {
  let value = "";
  let quoted = false;
  let kept = 0;
  const text = raw.trim();
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? "";
    if (char === '"') quoted = !quoted;
    else if (char === "\\") {
      at += 1;
      const next = text[at] ?? "";
      value += { n: "\n", t: "\t", b: "\b" }[next] ?? next;
    } else if (!quoted && (char === "#" || char === ";")) break;
    else value += char;
    if (quoted || !/\s/.test(char)) kept = value.length;
  }
  return value.slice(0, kept);
}

/** Returns the text of a plain file, or undefined if it is missing or too large. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    await using handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const status = await handle.stat();
    if (!status.isFile() || status.size > FILE_MAX_BYTES) return undefined;
    return await readFile(handle, "utf8");
  } catch {
    return undefined;
  }
}

const expandPath = (path: string, from: string): string =>
  path.startsWith("~/") ? join(homedir(), path.slice(2)) : resolve(from, path);

/** The state of one search of a workspace. */
class Looking {
  readonly places = new Set<string>();
  tooMuch = false;
  readonly #workspace: string;
  readonly #seen = new Set<string>();
  #looks = 0;

  constructor(workspace: string) {
    this.#workspace = workspace;
  }

  /** Returns false if `what` was examined before, or if the limit is reached. */
  #first(what: string): boolean {
    if (this.#seen.has(what)) return false;
    this.#seen.add(what);
    this.#looks += 1;
    this.tooMuch ||= this.#looks > LOOKS_MAX;
    return !this.tooMuch;
  }

  /**
   * Records a path under its name and its real path. Skips paths outside the workspace, because no sandbox
   * can write them.
   */
  async #note(path: string): Promise<void> {
    const real = await realpath(path).catch(() => path);
    for (const one of [path, real]) {
      if (one !== this.#workspace && isInside(this.#workspace, one)) this.places.add(one);
    }
  }

  /** Examines the repository whose `.git` is in this folder. */
  async repository(worktree: string): Promise<void> {
    const dotGit = join(worktree, ".git");
    const status = await lstat(dotGit).catch(() => undefined);
    if (status === undefined || !this.#first(dotGit)) return;
    await this.#note(dotGit);
    const [, named] = /^gitdir:\s*(.+?)\s*$/m.exec((await textOf(dotGit)) ?? "") ?? [];
    await this.#directory(named === undefined ? dotGit : resolve(dirname(dotGit), named), worktree);
  }

  async #directory(directory: string, worktree: string): Promise<void> {
    const named = (await textOf(join(directory, "commondir")))?.trim();
    const common = named ? resolve(directory, named) : directory;
    for (const one of [directory, common]) await this.#note(one);
    for (const file of ["config", "config.worktree"]) {
      for (const one of new Set([directory, common])) await this.#settings(join(one, file), worktree);
    }
    for (const file of globalFiles()) await this.#settings(file, worktree);
    if (!this.#first(`directory ${common}`)) return;
    await this.#worktrees(common);
    await this.#modules(join(common, "modules"));
    for (const { key, value } of gitSettings((await textOf(join(worktree, ".gitmodules"))) ?? "")) {
      if (key.startsWith("submodule.") && key.endsWith(".path")) await this.#below(worktree, value);
    }
  }

  /** Examines the paths that a file's settings name: hooks, included files, submodules. */
  async #settings(file: string, worktree: string): Promise<void> {
    if (!this.#first(`${file} for ${worktree}`)) return;
    for (const { key, value } of gitSettings((await textOf(file)) ?? "")) {
      if (key === "core.hookspath" && value !== "") await this.#note(expandPath(value, worktree));
      if (/^include(?:if\..*)?\.path$/s.test(key) && value !== "") {
        const included = expandPath(value, dirname(file));
        await this.#note(included);
        await this.#settings(included, worktree);
      }
      // By default, a submodule's name is its path.
      const [, name] = /^submodule\.(.+)\.\w+$/s.exec(key) ?? [];
      if (name !== undefined) await this.#below(worktree, name);
    }
  }

  async #below(worktree: string, path: string): Promise<void> {
    const folder = resolve(worktree, path);
    if (!isAbsolute(path) && folder !== worktree && isInside(this.#workspace, folder))
      await this.repository(folder);
  }

  async #worktrees(common: string): Promise<void> {
    const folder = join(common, "worktrees");
    for (const name of await readdir(folder).catch(() => [])) {
      if (!this.#first(join(folder, name))) return;
      const dotGit = (await textOf(join(folder, name, "gitdir")))?.trim();
      const worktree = dotGit === undefined ? undefined : dirname(resolve(folder, name, dotGit));
      if (worktree !== undefined && isInside(this.#workspace, worktree)) await this.repository(worktree);
    }
  }

  /** Examines the directories of submodules, whose names may contain slashes. */
  async #modules(folder: string, depth = 0): Promise<void> {
    if (depth > MODULES_DEPTH_MAX) return;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.filter((one) => one.isDirectory())) {
      const directory = join(folder, entry.name);
      if (!this.#first(`module ${directory}`)) return;
      const config = await textOf(join(directory, "config"));
      if (config === undefined) {
        await this.#modules(directory, depth + 1);
        continue;
      }
      const named = gitSettings(config).findLast(({ key }) => key === "core.worktree")?.value;
      const worktree = named === undefined ? undefined : resolve(directory, named);
      if (worktree !== undefined && isInside(this.#workspace, worktree)) await this.repository(worktree);
    }
  }
}

/** The git settings of the user and of the machine may also name hooks. */
const globalFiles = (): string[] => [
  join(homedir(), ".gitconfig"),
  join(homedir(), ".config", "git", "config"),
  "/etc/gitconfig",
];

/** Returns the real paths of a workspace's files and folders that control git. */
export async function gitLayout(workspace: string): Promise<GitLayout> {
  const looking = new Looking(workspace);
  await looking.repository(workspace);
  return { places: [...looking.places].sort(), tooMuch: looking.tooMuch };
}
