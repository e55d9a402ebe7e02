// Owns the records of joined programs: `~/.parley/joined/HANDLE.json`, readable by the user only. A record
// contains the program, its project folder, a token for each window's session, and the changes for `leave` to
// undo.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import type { Cli } from "../../cli/cli.ts";
import type { CliParts } from "../../cli/parts.ts";
import { replaceFile } from "../../config/replace-file.ts";
import { isObject, jsonOf } from "../../core/json.ts";
import type { Change } from "./change.ts";
import type { ProgramId } from "./programs.ts";
import type { Wake } from "./words.ts";

/** Maximum number of open windows of one program in one folder. */
export const WINDOWS_MAX = 8;
/** The valid window numbers. */
export const WINDOW_NUMBERS: readonly number[] = Array.from({ length: WINDOWS_MAX }, (_, at) => at + 1);
const NAME_MAX_CHARS = 30;
const HASH_CHARS = 6;

export interface JoinRecord {
  readonly handle: string;
  readonly program: ProgramId;
  readonly folder: string;
  /** One token for each window, valid for that window's session only. */
  readonly tokens: readonly string[];
  /** Id of the tokens' series. The tokens of a series are revoked together. */
  readonly series: string;
  /** How an idle window is woken. Default: the setting `joined.wake`. */
  readonly wake?: Wake;
  /** The chat that is told about waiting messages. Default: the setting `joined.notify`. */
  readonly notify?: string;
  readonly changes: readonly Change[];
}

/** Returns the words of a command that starts Parley with the same configuration. */
export function startWords({ parts, options }: Cli): string[] {
  const { node, script } = parts.machine.launcher;
  const config = options.config ?? (parts.env.PARLEY_CONFIG || undefined);
  return [
    node,
    script,
    ...(config === undefined ? [] : ["--config", realpathSync(config)]),
    ...(options.url === undefined ? [] : ["--url", options.url]),
  ];
}

/** Returns whether a program has joined by its plugin, which changes no files of the project. */
export const isOfPlugin = ({ changes }: JoinRecord): boolean => changes.length === 0;

export const joinedFolder = (home: string): string => join(home, ".parley", "joined");

/** Returns the handle of a window. Each window of a program has its own handle. */
export const windowHandle = (handle: string, window: number): string =>
  window === 1 ? handle : `${handle}.${window}`;

/** Returns the handle of a program in a folder. Two folders with the same name get different handles. */
export function handleFor(program: ProgramId, folder: string): string {
  const name = basename(folder)
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, NAME_MAX_CHARS);
  const hash = createHash("sha256").update(folder).digest("hex").slice(0, HASH_CHARS);
  return [program, name, hash].filter((part) => part !== "").join("-");
}

export function readRecord(home: string, handle: string): JoinRecord | undefined {
  let text: string;
  try {
    text = readFileSync(join(joinedFolder(home), `${handle}.json`), "utf8");
  } catch {
    return undefined;
  }
  const record = jsonOf(text);
  return isObject(record) && Array.isArray(record.tokens) ? (record as unknown as JoinRecord) : undefined;
}

/** Returns whether any window of one handle would get the same session as a window of the other. */
export function shareSession(one: string, other: string): boolean {
  return WINDOW_NUMBERS.some(
    (number) => windowHandle(one, number) === other || windowHandle(other, number) === one,
  );
}

export function listRecords(home: string): JoinRecord[] {
  let names: string[];
  try {
    names = readdirSync(joinedFolder(home));
  } catch {
    return [];
  }
  const handles = names
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.slice(0, -".json".length));
  return handles.flatMap((handle) => readRecord(home, handle) ?? []);
}

export function recordFor(
  { home, folder }: Pick<CliParts, "home" | "folder">,
  program: ProgramId,
): JoinRecord | undefined {
  return listRecords(home).find((record) => record.program === program && record.folder === folder);
}

export function writeRecord({ home }: Pick<CliParts, "home">, record: JoinRecord): void {
  mkdirSync(joinedFolder(home), { recursive: true, mode: 0o700 });
  replaceFile(join(joinedFolder(home), `${record.handle}.json`), `${JSON.stringify(record, null, 2)}\n`);
}

/**
 * Removes a record and the state of its windows. Their cursors stay, because the sessions stay, too: a
 * program that joins under this name later gets the messages that came meanwhile, and no others again.
 */
export function dropRecord(home: string, handle: string): void {
  rmSync(join(joinedFolder(home), `${handle}.json`), { force: true });
  const folder = join(joinedFolder(home), handle);
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder).filter((one) => !one.endsWith(".cursor")))
    rmSync(join(folder, name), { recursive: true, force: true });
}
