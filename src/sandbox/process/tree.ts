// Counts and measures the processes of a sandboxed program, and their hidden files, from outside.
// In a process namespace every orphan becomes a child of the first process, so a walk down from the backend's
// process finds every process; a process that starts during the walk is found by the next check.
// PT2: the memory of a process is read from any living thread: the first one may exit before the others.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process has already exited.
    return "";
  }
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** Returns the child processes, including those that have exited but were not reaped yet. */
export function childrenOf(pid: number): number[] {
  return threadsOf(pid).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number),
  );
}

export interface Tree {
  /** Has one entry for each process: the ids of the process's threads. */
  readonly processes: readonly (readonly string[])[];
  /** Number of threads of all processes: the kernel's limit counts threads. */
  readonly threads: number;
}

/** Returns everything below `root`, without `root`. Stops counting above `threadsMax`. */
export function treeBelow(root: number, threadsMax: number): Tree {
  const pids = childrenOf(root);
  const processes: string[][] = [];
  let threads = 0;
  for (let index = 0; index < pids.length && threads <= threadsMax; index++) {
    const pid = pids[index] ?? 0;
    const ids = threadsOf(pid);
    threads += ids.length;
    if (ids.length > 0) processes.push(ids);
    pids.push(...childrenOf(pid));
  }
  return { processes, threads };
}

/** A deleted file, as the kernel shows it. Files of memory are counted as memory. */
const DELETED = /^(?!\/memfd:|\/dev\/zero|\/SYSV)\/.* \(deleted\)$/;
const DELETED_MAP = /^(?:\S+\s+){3}(?!00:00)\S+\s+\d+\s+(\/.*)$/gm;
/** Number of files that wait in a socket to be received. */
const FILES_IN_SOCKET = /^scm_fds:\s*[1-9]/m;

function openFiles(pid: string): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
}

function targetOf(pid: string, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    // It was closed meanwhile.
    return "";
  }
}

/** Returns whether one of these processes keeps a file that no folder shows: open, mapped, or in a socket. */
export function mayHideFiles(processes: Tree["processes"]): boolean {
  return processes.flat().some((id) => {
    const hides = (fd: string): boolean => {
      const target = targetOf(id, fd);
      if (target.startsWith("socket:")) return FILES_IN_SOCKET.test(read(`/proc/${id}/fdinfo/${fd}`));
      return DELETED.test(target);
    };
    const maps = read(`/proc/${id}/maps`).matchAll(DELETED_MAP);
    return openFiles(id).some(hides) || [...maps].some(([, path = ""]) => DELETED.test(path));
  });
}

const ROUGH = /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm;
const EXACT = /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm;

/** Returns undefined if the thread has exited and its memory is no longer visible. */
function sumOf(text: string, names: RegExp): number | undefined {
  const lines = [...text.matchAll(names)];
  if (lines.length === 0) return undefined;
  return lines.reduce((sum, [, kilobytes]) => sum + Number(kilobytes), 0) * 1024;
}

function roughOf(threads: readonly string[]): { thread: string; bytes: number } | undefined {
  for (const thread of threads) {
    const bytes = sumOf(read(`/proc/${thread}/status`), ROUGH);
    if (bytes !== undefined) return { thread, bytes };
  }
  return undefined;
}

/** Returns the bytes of memory of these processes. Shared pages count once for each process. */
export function roughMemory(processes: Tree["processes"]): number {
  return processes.reduce((sum, threads) => sum + (roughOf(threads)?.bytes ?? 0), 0);
}

interface Measure {
  readonly bytes: number;
  /** False if one of the processes exited meanwhile, so that the others' shares of its pages grew. */
  readonly isSteady: boolean;
}

/**
 * Measures the memory of these processes, counting each page once. Yields to other work, because a program
 * can make this slow with much shared memory. Stops counting above `bytesMax`.
 */
export async function exactMemory(processes: Tree["processes"], bytesMax: number): Promise<Measure> {
  const measured: string[] = [];
  let bytes = 0;
  for (const threads of processes) {
    const rough = roughOf(threads);
    if (rough === undefined) continue;
    const text = await readFile(`/proc/${rough.thread}/smaps_rollup`, "utf8").catch(() => "");
    // If the exact size is unavailable, the rough size is used.
    bytes += sumOf(text, EXACT) ?? rough.bytes;
    measured.push(rough.thread);
    if (bytes > bytesMax) break;
  }
  return { bytes, isSteady: measured.every((thread) => roughOf([thread]) !== undefined) };
}

/** Maximum number of measures. Without it, a program could avoid its limit with processes that exit. */
const MEASURES_MAX = 8;

/**
 * Returns true if these processes use more memory than `bytesMax`. Two steady measures must show it, because
 * a new process briefly shares its parent's memory, which then counts twice.
 */
export async function usesMoreThan(processes: Tree["processes"], bytesMax: number): Promise<boolean> {
  let steady = 0;
  for (let count = 0; count < MEASURES_MAX && steady < 2; count += 1) {
    const { bytes, isSteady } = await exactMemory(processes, bytesMax);
    if (bytes <= bytesMax) return false;
    if (isSteady) steady += 1;
  }
  return true;
}
