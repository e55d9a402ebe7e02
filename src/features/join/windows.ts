// Owns the files about the open windows of a joined program, and the numbers of these windows. A window is
// one running instance of a coding agent. Because each window has its own number, two windows never share a
// session.
// WI1: a window keeps its number while its `parley mcp` runs. A free number is used again, so a restarted
//      window returns to its session.
//      The files name a process by its id and its start, so a later process with the same id holds nothing.
// WI2: a hook belongs to the window whose program started it, directly or through other processes. A program
//      that was started to continue the conversation of a closed window belongs to that window.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../../config/replace-file.ts";
import { isObject, jsonOf } from "../../core/json.ts";
import { pause } from "../../world/pause.ts";
import { markOf, runningProcess } from "../../world/process-start.ts";
import type { Clock } from "../../world.ts";
import { WINDOW_NUMBERS } from "./record.ts";

/** If a lock stays for longer than this while another process waits, its process counts as dead. */
const LOCK_MAX_MS = 5_000;
const LOCK_TRIES_MAX = 200;
const LOCK_EVERY_MS = 50;
/** Maximum number of processes from a hook up to its program: shells and launchers are in between. */
const ANCESTORS_MAX = 8;

/** The process ids of an open window: its `parley mcp`, and the program that started `parley mcp`. */
interface Window {
  readonly bridge: number;
  readonly program: number;
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Runs `work` while this process holds the lock of the folder. Returns undefined if the lock stays taken. */
async function withLock<T>(folder: string, clock: Clock, work: () => T): Promise<T | undefined> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = join(folder, "lock");
  let seen: number | undefined;
  let seenAt = 0;
  for (let attempt = 0; attempt < LOCK_TRIES_MAX; attempt += 1) {
    try {
      mkdirSync(lock);
    } catch {
      // The age is not derived from the lock's own time, because the wall clock may have been set since then.
      const found = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
      if (found !== seen) seenAt = clock.monotonic();
      seen = found;
      if (clock.monotonic() - seenAt > LOCK_MAX_MS) rmSync(lock, { recursive: true, force: true });
      await pause(clock, LOCK_EVERY_MS, undefined, "alive");
      continue;
    }
    try {
      return work();
    } finally {
      rmSync(lock, { recursive: true, force: true });
    }
  }
  return undefined;
}

function windowAt(folder: string, number: number): Window | undefined {
  const window = jsonOf(readText(join(folder, `${number}.json`)) ?? "");
  if (!isObject(window) || typeof window.program !== "number") return;
  const bridge = runningProcess(String(window.bridge));
  return bridge === undefined ? undefined : { bridge, program: window.program };
}

/** Reserves the lowest free number. Returns undefined if all numbers are in use. */
export async function openWindow(folder: string, window: Window, clock: Clock): Promise<number | undefined> {
  return withLock(folder, clock, () => {
    for (const number of WINDOW_NUMBERS) {
      if (windowAt(folder, number) !== undefined || isContinued(folder, number)) continue;
      const written = { ...window, bridge: markOf(window.bridge) };
      writeFileSync(join(folder, `${number}.json`), JSON.stringify(written), { mode: 0o600 });
      return number;
    }
    return undefined;
  });
}

/** Returns whether a number is in use. */
export const isOpen = (folder: string, number: number): boolean => windowAt(folder, number) !== undefined;

/** Frees a number. */
export function closeWindow(folder: string, number: number): void {
  rmSync(join(folder, `${number}.json`), { force: true });
}

/** Asks `ps` about a process, on systems without `/proc`. */
function askPs(pid: number, field: "ppid" | "command"): string | undefined {
  try {
    return execFileSync("ps", ["-ww", "-o", `${field}=`, "-p", String(pid)], { encoding: "utf8" });
  } catch {
    return undefined;
  }
}

/** Returns the process id of a process's parent. */
function parentOf(pid: number, platform: string): number | undefined {
  const parent =
    platform === "linux"
      ? /^PPid:\s*(\d+)/m.exec(readText(`/proc/${pid}/status`) ?? "")?.[1]
      : askPs(pid, "ppid");
  return parent === undefined || !Number.isInteger(Number(parent)) ? undefined : Number(parent);
}

/** Returns a process, its parent, the parent's parent, and so on. */
export function ancestorsOf(pid: number, platform: string): number[] {
  const ancestors: number[] = [];
  for (let at: number | undefined = pid; at !== undefined && at > 1; at = parentOf(at, platform)) {
    ancestors.push(at);
    if (ancestors.length > ANCESTORS_MAX) break;
  }
  return ancestors;
}

/**
 * Returns the process id of the program that started this process. npx, its shell and a launcher may be in
 * between: the command line of each contains `words`.
 */
export function programAbove(words: string, platform: string): number {
  const isBetween = (pid: number): boolean => {
    const line =
      platform === "linux" ? readText(`/proc/${pid}/cmdline`)?.replaceAll("\0", " ") : askPs(pid, "command");
    return line?.includes(words) === true;
  };
  return ancestorsOf(process.ppid, platform).find((pid) => !isBetween(pid)) ?? process.ppid;
}

export interface OwnWindow {
  readonly number: number;
  /** True if Parley started the program in the background, to continue this window's conversation. */
  readonly continued: boolean;
  /** Number of processes between the process and the window's program. */
  readonly distance: number;
}

/**
 * Returns the nearest window above a process, whose ancestors are given: a program may have started another
 * one, which has a window of its own.
 */
export function windowOf(folder: string, ancestors: readonly number[]): OwnWindow | undefined {
  const at = (number: number, continued: boolean, pid = -1): OwnWindow => {
    return { number, continued, distance: ancestors.indexOf(pid) };
  };
  return [
    ...WINDOW_NUMBERS.map((number) => at(number, true, holderOf(continuedFile(folder, number)))),
    ...WINDOW_NUMBERS.map((number) => at(number, false, windowAt(folder, number)?.program)),
  ]
    .filter(({ distance }) => distance >= 0)
    .sort((a, b) => a.distance - b.distance)[0];
}

const continuedFile = (folder: string, number: number): string => join(folder, `${number}.continued`);

/**
 * Returns whether a program that Parley started is continuing this window's conversation in the background.
 */
export const isContinued = (folder: string, number: number): boolean =>
  holderOf(continuedFile(folder, number)) !== undefined;

/**
 * Marks a window as continued by a program that this process starts. Returns a function that removes the
 * mark.
 */
export function continueWindow(folder: string, number: number): () => void {
  const file = continuedFile(folder, number);
  replaceFile(file, markOf(process.pid));
  return () => rmSync(file, { force: true });
}

/**
 * Makes this process the only waiter (or waker) of a window. Returns a function that tells whether it still
 * is: a later process replaces it.
 */
export function takeOver(folder: string, number: number, kind: "waiter" | "waker"): () => boolean {
  const file = join(folder, `${number}.${kind}`);
  const mark = markOf(process.pid);
  replaceFile(file, mark);
  return () => readText(file) === mark;
}

/**
 * Returns whether a process waits for messages that is not the window's own, and so continues after the
 * window was closed.
 */
export function hasKeeper(folder: string, number: number): boolean {
  const waker = holderOf(join(folder, `${number}.waker`));
  return waker !== undefined && waker !== windowAt(folder, number)?.bridge;
}

/** Returns the id of the last message that was passed to the window's model. */
export function cursorOf(folder: string, number: number): string | undefined {
  return readText(join(folder, `${number}.cursor`));
}

/** Returns the id of the process that a file names, if the process is running. */
const holderOf = (file: string): number | undefined => runningProcess(readText(file) ?? "");

const claimFile = (folder: string, number: number): string => join(folder, `${number}.telling`);

/**
 * Claims the messages after `from`, so that only this process passes them on. Returns false if another
 * running process has claimed them, or if they were passed on already.
 */
export async function claimNews(
  folder: string,
  number: number,
  from: string | undefined,
  clock: Clock,
): Promise<boolean> {
  const claim = claimFile(folder, number);
  const claimed = await withLock(folder, clock, () => {
    if (cursorOf(folder, number) !== from || holderOf(claim) !== undefined) return false;
    replaceFile(claim, markOf(process.pid));
    return true;
  });
  return claimed === true;
}

/**
 * Ends the claim, even if the cursor cannot be written: this process may run on after the error. `to`: the id
 * of the last message that was passed on, or undefined if none was.
 */
export async function endClaim(
  folder: string,
  number: number,
  to: string | undefined,
  clock: Clock,
): Promise<void> {
  await withLock(folder, clock, () => {
    try {
      if (to !== undefined) replaceFile(join(folder, `${number}.cursor`), to);
    } finally {
      rmSync(claimFile(folder, number), { force: true });
    }
  });
}

/**
 * Moves the cursor past messages that the program has read itself. Does nothing if the cursor is no longer at
 * `from`, or if a running process has claimed the messages.
 */
export async function skipNews(
  folder: string,
  number: number,
  { from, to }: { readonly from: string | undefined; readonly to: string },
  clock: Clock,
): Promise<void> {
  await withLock(folder, clock, () => {
    if (cursorOf(folder, number) !== from || holderOf(claimFile(folder, number)) !== undefined) return;
    replaceFile(join(folder, `${number}.cursor`), to);
  });
}

/** The state of the conversation in a window, as the window's hooks report it. */
export interface Conversation {
  readonly id: string;
  /** True while a turn is in progress. */
  readonly busy: boolean;
  /** Path of the window's own socket, for programs that have one. */
  readonly socket?: string;
  readonly token?: string;
}

const conversationFile = (folder: string, number: number): string => join(folder, `${number}.conversation`);

export function conversationOf(folder: string, number: number): Conversation | undefined {
  const known = jsonOf(readText(conversationFile(folder, number)) ?? "");
  if (!isObject(known) || typeof known.id !== "string") return undefined;
  return known as unknown as Conversation;
}

export function noteConversation(folder: string, number: number, conversation: Conversation): void {
  replaceFile(conversationFile(folder, number), JSON.stringify(conversation));
}
