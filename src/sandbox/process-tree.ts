// Owns what the host sees of a contained program: its processes, counted and weighed, from outside.
// PT1: in a process namespace every orphan becomes a child of the first process, so a walk from the backend's
//      process down misses nobody who stands still; one who forks meanwhile is met at the next look.

import { readdirSync, readFileSync } from "node:fs";

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
  readonly pids: readonly number[];
  /** Threads of all of them: what the kernel's own limit counts too. */
  readonly threads: number;
}

/** Everything below `root`, itself left out. Stops counting above `threadsMax`. */
export function treeBelow(root: number, threadsMax: number): Tree {
  const pids = childrenOf(root);
  let threads = 0;
  for (let index = 0; index < pids.length && threads <= threadsMax; index++) {
    const pid = pids[index] ?? 0;
    threads += threadsOf(pid).length;
    pids.push(...childrenOf(pid));
  }
  return { pids, threads };
}

const sumOf = (text: string, names: RegExp): number =>
  [...text.matchAll(names)].reduce((sum, [, kilobytes]) => sum + Number(kilobytes), 0) * 1024;

/** Bytes of memory that belong to these processes; a page that several share may count several times. */
export function roughMemory(pids: readonly number[]): number {
  const names = /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm;
  return pids.reduce((sum, pid) => sum + sumOf(read(`/proc/${pid}/status`), names), 0);
}

/** The same with every page counted once; slower. */
export function exactMemory(pids: readonly number[]): number {
  const names = /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm;
  return pids.reduce((sum, pid) => sum + sumOf(read(`/proc/${pid}/smaps_rollup`), names), 0);
}
