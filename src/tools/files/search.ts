// Implements grep and glob. They run in a process of their own (file-worker.ts), which is killed at its time
// limit: a regular expression may need more time than the gateway has, and the walk blocks its process.
// SE1: a search never leaves the workspace. Links are not followed, and each folder and file is checked on
//      its open handle, as in workspace.ts. So another program (ripgrep) is not used: it opens by path.
// SE2: both tools leave out `.git` and everything that a `.gitignore` file at or below `path` excludes. To
//      search a folder that is left out, name it as `path`.
// SE3: results are in the order of their paths, so that the same files give the same result.

import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { GREP_LIMIT, SEARCH_LINE_MAX_CHARS, SEARCH_TEXT_MAX_BYTES } from "../../core/shapes/tool.ts";
import { head } from "../../core/text/cut.ts";
import type { FileContext } from "./file-operations.ts";
import { type Glob, type IgnoreFile, isIgnored, matchesGlob, readGlob, readIgnoreFile } from "./patterns.ts";
import { resolvePath } from "./workspace.ts";

/** Maximum entries that one search looks at, and bytes that it reads. */
const ENTRIES_MAX = 100_000;
const READ_MAX_BYTES = 1024 * 1024 * 1024;
/** Larger files are not searched. */
const FILE_MAX_BYTES = 8 * 1024 * 1024;
const IGNORE_FILE_MAX_BYTES = 64 * 1024;
/** Maximum steps for all globs and `.gitignore` rules of one search, a few seconds of work. */
const GLOB_STEPS_MAX = 300_000_000;

type GrepResult = ToolResultOf<"grep">;
type GlobResult = ToolResultOf<"glob">;

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const isLinux = process.platform === "linux";

/** Opens a path that must not have been replaced by a link, and calls `use`. Undefined if that fails. */
function withOpen<T>(real: string, flags: number, use: (fd: number) => T): T | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | flags);
    if (isLinux && readlinkSync(`/proc/self/fd/${fd}`) !== real) return undefined;
    return use(fd);
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function readBounded(real: string, bytesMax: number): Buffer | undefined {
  return withOpen(real, 0, (fd) => {
    const status = fstatSync(fd);
    return status.isFile() && status.size <= bytesMax ? readFileSync(fd) : undefined;
  });
}

/** A file that a search found. */
interface Found {
  /** Relative to the start of the search. */
  readonly path: string;
  readonly real: string;
}

/** One search: where it starts, and what it has used of its limits. */
class Walk {
  /** The limit that ended the walk. */
  ended: string | undefined;
  readonly #steps = { left: GLOB_STEPS_MAX };
  readonly #root: string;
  #entries = 0;
  #bytes = 0;
  #unread = 0;

  constructor(root: string) {
    this.#root = root;
  }

  /** Returns the files below a folder ("" or "src/"), in the order of their paths. */
  *files(below = "", above: readonly IgnoreFile[] = []): Generator<Found> {
    const folder = resolve(this.#root, below);
    const unsorted = withOpen(folder, O_DIRECTORY, (fd) =>
      readdirSync(isLinux ? `/proc/self/fd/${fd}` : folder, { withFileTypes: true }),
    );
    const entries = unsorted?.toSorted((one, other) => (one.name < other.name ? -1 : 1)) ?? [];
    const rules = entries.some(({ name }) => name === ".gitignore")
      ? readBounded(join(folder, ".gitignore"), IGNORE_FILE_MAX_BYTES)
      : undefined;
    const ignore =
      rules === undefined ? above : [...above, readIgnoreFile(below, rules.toString(), this.#steps)];
    for (const entry of entries) {
      const path = below + entry.name;
      this.#entries += 1;
      if (this.#entries > ENTRIES_MAX) this.ended = `${ENTRIES_MAX} files and folders`;
      if (this.ended !== undefined) return;
      if (entry.name === ".git" || this.#isLeftOut(ignore, path, entry.isDirectory())) continue;
      if (entry.isDirectory()) yield* this.files(`${path}/`, ignore);
      else if (entry.isFile()) yield { path, real: join(folder, entry.name) };
    }
  }

  #isLeftOut(ignore: readonly IgnoreFile[], path: string, isFolder: boolean): boolean {
    const isOut = isIgnored(ignore, path, isFolder, this.#steps);
    return this.#countSteps() || isOut;
  }

  /** Returns whether a glob matches a path. False if the search has reached its limit. */
  matches(glob: Glob, path: string): boolean {
    const isMatch = matchesGlob(glob, path, this.#steps);
    return !this.#countSteps() && isMatch;
  }

  /** Ends the walk if no steps are left, and returns whether it has ended. */
  #countSteps(): boolean {
    if (this.#steps.left < 0) this.ended ??= `${GLOB_STEPS_MAX} steps for globs and .gitignore rules`;
    return this.ended !== undefined;
  }

  /** Returns the lines of a text file, or nothing if it is too large or not text. */
  linesOf({ real }: Found): readonly string[] {
    const bytes = readBounded(real, FILE_MAX_BYTES);
    this.#bytes += bytes?.length ?? 0;
    if (this.#bytes > READ_MAX_BYTES) this.ended = `${READ_MAX_BYTES} bytes to read`;
    if (bytes === undefined) this.#unread += 1;
    if (bytes === undefined || bytes.includes(0)) return [];
    const lines = bytes.toString().split(/\r?\n/);
    return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
  }

  /** Describes the missing part of the result. */
  parts(): { truncated?: true; note?: string } {
    const { ended } = this;
    const cut = ended === undefined ? [] : [`Ended at its limit of ${ended}. Narrow path, glob or pattern.`];
    const unread = this.#unread === 0 ? [] : [`${this.#unread} files were too large or could not be read.`];
    const notes = [...cut, ...unread];
    const truncated = ended === undefined ? undefined : (true as const);
    return optional({ truncated, note: notes.length === 0 ? undefined : notes.join(" ") });
  }
}

interface Start {
  readonly walk: Walk;
  readonly files: Iterable<Found>;
  /** Returns the path as results show it. */
  readonly shown: (path: string) => string;
}

async function start(ctx: FileContext, path: unknown): Promise<Result<Start>> {
  const place = await resolvePath(ctx.agent.workspace, String(path ?? "."), { createFolders: false });
  if (!place.ok) return place;
  const { real, shown, found } = place.value;
  if (found === "nothing") return fail("file_not_found", `${shown} does not exist`);
  const walk = new Walk(real);
  if (found === "file") return ok({ walk, files: [{ path: "", real }], shown: () => shown });
  return ok({ walk, files: walk.files(), shown: (one) => (shown === "." ? one : `${shown}/${one}`) });
}

function compile<T>(name: string, source: string, make: () => T): Result<T> {
  try {
    return ok(make());
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return fail("invalid_argument", `${name} ${JSON.stringify(head(source, 100))} is invalid: ${why}`);
  }
}

const globOf = (name: string, glob: string) => compile(name, glob, () => readGlob(glob, true));

const limitOf = (limit: unknown): number => Math.min(Number(limit ?? GREP_LIMIT.fallback), GREP_LIMIT.max);

async function grep(ctx: FileContext, args: Record<string, unknown>): Promise<Result<GrepResult>> {
  const source = String(args.pattern);
  const pattern = compile("pattern", source, () => new RegExp(source, args.ignoreCase === true ? "i" : ""));
  if (!pattern.ok) return pattern;
  const only = globOf("glob", String(args.glob ?? "**"));
  if (!only.ok) return only;
  const begun = await start(ctx, args.path);
  if (!begun.ok) return begun;
  const { walk, files, shown } = begun.value;
  const limit = limitOf(args.limit);
  const matches: { path: string; line: number; text: string }[] = [];
  let bytes = 0;
  for (const file of files) {
    if (walk.ended !== undefined) break;
    if (file.path !== "" && !walk.matches(only.value, file.path)) continue;
    for (const [index, line] of walk.linesOf(file).entries()) {
      if (!pattern.value.test(line)) continue;
      const match = { path: shown(file.path), line: index + 1, text: head(line, SEARCH_LINE_MAX_CHARS) };
      bytes += Buffer.byteLength(match.path) + Buffer.byteLength(match.text);
      if (matches.length >= limit) walk.ended = `${limit} matches`;
      else if (bytes > SEARCH_TEXT_MAX_BYTES) walk.ended = `${SEARCH_TEXT_MAX_BYTES} bytes`;
      if (walk.ended !== undefined) break;
      matches.push(match);
    }
  }
  return ok({ status: "ok", matches, ...walk.parts() });
}

async function glob(ctx: FileContext, args: Record<string, unknown>): Promise<Result<GlobResult>> {
  const pattern = globOf("pattern", String(args.pattern));
  if (!pattern.ok) return pattern;
  const begun = await start(ctx, args.path);
  if (!begun.ok) return begun;
  const { walk, files, shown } = begun.value;
  const limit = limitOf(args.limit);
  const paths: string[] = [];
  let bytes = 0;
  for (const { path } of files) {
    if (!walk.matches(pattern.value, path)) continue;
    bytes += Buffer.byteLength(shown(path));
    if (paths.length >= limit) walk.ended = `${limit} paths`;
    else if (bytes > SEARCH_TEXT_MAX_BYTES) walk.ended = `${SEARCH_TEXT_MAX_BYTES} bytes`;
    if (walk.ended !== undefined) break;
    paths.push(shown(path));
  }
  return ok({ status: "ok", paths, ...walk.parts() });
}

export const SEARCH_OPERATIONS = { grep, glob } as const;
