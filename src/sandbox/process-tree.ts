// Owns what the host sees of a contained program: its processes, counted and weighed, from outside.
// PT1: in a process namespace every orphan becomes a child of the first process, so a walk from the backend's
//      process down misses nobody who stands still; one who forks meanwhile is met at the next look.
// PT2: a process weighs what any of its living threads says: the first one may end and leave the others.

import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It ended meanwhile.
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

/** The processes that a process started and that have not been waited for. */
export function childrenOf(pid: number): number[] {
  return threadsOf(pid).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number),
  );
}

export interface Tree {
  /** One process each: the ids of its threads. */
  readonly processes: readonly (readonly string[])[];
  /** Threads of all of them: what the kernel's own limit counts too. */
  readonly threads: number;
}

/** Everything below `root`, itself left out. Stops counting above `threadsMax`. */
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

const ROUGH = /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm;
const EXACT = /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm;

/** Undefined: a thread that has ended, and with it its view of the memory. */
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

/** Bytes of memory that belong to these processes; a page that several share counts several times. */
export function roughMemory(processes: Tree["processes"]): number {
  return processes.reduce((sum, threads) => sum + (roughOf(threads)?.bytes ?? 0), 0);
}

/**
 * The same with every page counted once. Slow where much is shared, and how much is up to who is watched: it
 * keeps nobody else waiting. Stops counting above `bytesMax`.
 */
export async function exactMemory(processes: Tree["processes"], bytesMax: number): Promise<number> {
  let bytes = 0;
  for (const threads of processes) {
    const rough = roughOf(threads);
    if (rough === undefined) continue;
    const text = await readFile(`/proc/${rough.thread}/smaps_rollup`, "utf8").catch(() => "");
    // What can't be weighed exactly counts as it looks.
    bytes += sumOf(text, EXACT) ?? rough.bytes;
    if (bytes > bytesMax) break;
  }
  return bytes;
}
