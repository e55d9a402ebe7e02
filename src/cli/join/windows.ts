// Owns the numbers of the open windows of a joined program, so that two never share a session.
// WI1: a window has its number from the start of its `parley mcp` until that ends; a free number is used
//      again, so a restarted window returns to its session.
// WI2: a hook belongs to the window whose program is among the hook's ancestors.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isObject, jsonOf } from "../../core/json.ts";
import { pause } from "../../world/pause.ts";
import type { Clock } from "../../world.ts";
import { replaceFile } from "../replace-file.ts";
import { WINDOWS_MAX } from "./record.ts";

/** A process that holds the lock longer has died. */
const LOCK_MAX_MS = 5_000;
const LOCK_TRIES_MAX = 200;
const LOCK_EVERY_MS = 50;
/** Shells and launchers between a program and its hook. */
const ANCESTORS_MAX = 8;

/** An open window: its `parley mcp`, and the program that started that. */
interface Window {
  readonly bridge: number;
  readonly program: number;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Runs `work` while no other process is in it for this folder. */
async function locked<T>(folder: string, clock: Clock, work: () => T): Promise<T | undefined> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = join(folder, "lock");
  for (let attempt = 0; attempt < LOCK_TRIES_MAX; attempt += 1) {
    try {
      mkdirSync(lock);
    } catch {
      const age = clock.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? clock.now());
      if (age > LOCK_MAX_MS) rmSync(lock, { recursive: true, force: true });
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
  if (!isObject(window) || typeof window.bridge !== "number" || typeof window.program !== "number") return;
  return isAlive(window.bridge) ? { bridge: window.bridge, program: window.program } : undefined;
}

/** Takes the lowest free number; undefined: all are in use. */
export async function openWindow(folder: string, window: Window, clock: Clock): Promise<number | undefined> {
  return locked(folder, clock, () => {
    for (let number = 1; number <= WINDOWS_MAX; number += 1) {
      if (windowAt(folder, number) !== undefined) continue;
      writeFileSync(join(folder, `${number}.json`), JSON.stringify(window), { mode: 0o600 });
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

/** Returns the parent of a process. */
function parentOf(pid: number, platform: string): number | undefined {
  if (platform === "linux") {
    const parent = /^PPid:\s*(\d+)/m.exec(readText(`/proc/${pid}/status`) ?? "")?.[1];
    return parent === undefined ? undefined : Number(parent);
  }
  try {
    const parent = Number(execFileSync("ps", ["-o", "ppid=", "-p", String(pid)], { encoding: "utf8" }));
    return Number.isInteger(parent) ? parent : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the number of the window whose program started this process, at any depth. */
export function windowOf(folder: string, pid: number, platform: string): number | undefined {
  const ancestors: number[] = [];
  for (let at: number | undefined = pid; at !== undefined && at > 1; at = parentOf(at, platform)) {
    ancestors.push(at);
    if (ancestors.length > ANCESTORS_MAX) break;
  }
  const open = Array.from({ length: WINDOWS_MAX }, (_, at) => at + 1);
  return open.find((number) => ancestors.includes(windowAt(folder, number)?.program ?? -1));
}

/** Makes this process the only waiter of a window: an earlier one sees that it was replaced. */
export function takeWait(folder: string, number: number): () => boolean {
  const file = join(folder, `${number}.waiter`);
  replaceFile(file, String(process.pid));
  return () => readText(file) === String(process.pid);
}

/** Returns the id of the last message that the window's model was given. */
export function cursorOf(folder: string, number: number): string | undefined {
  return readText(join(folder, `${number}.cursor`));
}

/** Moves the cursor; false: another process moved it before. */
export async function moveCursor(
  folder: string,
  number: number,
  move: { readonly from: string | undefined; readonly to: string },
  clock: Clock,
): Promise<boolean> {
  const moved = await locked(folder, clock, () => {
    if (cursorOf(folder, number) !== move.from) return false;
    replaceFile(join(folder, `${number}.cursor`), move.to);
    return true;
  });
  return moved === true;
}
