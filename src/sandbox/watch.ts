// Watches a sandboxed program while it runs: its time, its disk, and the backend's own checks.

import type { World } from "../world.ts";
import { type DiskBook, diskLook } from "./disk.ts";
import type { NetworkPeers } from "./peers.ts";
import type { Ending, ProcessPlan } from "./process/process.ts";
import type { Program, SandboxNeeds } from "./sandbox.ts";
import type { CacheView } from "./system-view.ts";
import type { Carrier } from "./uplink.ts";

/** Inputs from which a backend builds a sandbox. */
export interface SandboxInputs {
  readonly world: World;
  readonly needs: SandboxNeeds;
  /** Real path of the workspace, and its path in the settings. */
  readonly workspace: string;
  readonly namedWorkspace: string;
  /** The gateway's Node, and the folder of its code. */
  readonly node: string;
  readonly code: string;
  readonly codeCache?: CodeCache;
  /**
   * Environment of the backend's own program, with which it finds programs and docker's daemon. The program
   * inside the sandbox does not get this environment.
   */
  readonly environment: Readonly<Record<string, string>>;
  readonly disk: DiskBook;
  /** Records the processes that carry the network traffic of sandboxes. */
  readonly peers?: NetworkPeers;
  /** The carrier (uplink.ts) that works on this machine. Absent if the program gets no network. */
  readonly carrier?: Carrier;
}

/**
 * Folder for the compiled code of Parley's scripts. With it, a start takes a third of the time. Only a
 * script's first run may write to it. Each workspace has its own folder, so that a command that swaps folders
 * during that run affects no other workspace.
 */
export interface CodeCache {
  readonly dir: string;
  /** Files of the scripts that have run before. */
  readonly warm: Set<string>;
}

/** Returns the cache for one run of a program, or undefined if the program is not one of Parley's scripts. */
export function codeCacheFor(
  ground: Pick<SandboxInputs, "codeCache">,
  program: Program,
): CacheView | undefined {
  const { codeCache } = ground;
  if (codeCache === undefined || program.kind !== "script") return undefined;
  const writable = !codeCache.warm.has(program.file);
  codeCache.warm.add(program.file);
  return { dir: codeCache.dir, writable };
}

type Stop = (why: Ending) => void;

const LOOK_EVERY_MS = 50;
/** After a check, the pause is this many times as long as the check took, to leave time for other work. */
const PAUSE_TIMES = 10;

/** A backend's own checks of a run. `pid`: the process id of the backend. */
export interface BackendWatch {
  look(pid: number, stop: Stop): void;
  /** Returns whether the program may keep files open that no folder shows. */
  mayHideFiles(pid: number): boolean;
}

export function watchRun(
  ground: SandboxInputs,
  usedAtStart: number,
  timeoutMs: number,
  backend: BackendWatch,
): NonNullable<ProcessPlan["watch"]> {
  const { clock } = ground.world;
  return (child, stop) => {
    const lookAtDisk = diskLook(ground.disk, {
      quotaMb: ground.needs.diskMb,
      usedAtStart,
      mayHide: () => child.pid !== undefined && backend.mayHideFiles(child.pid),
      stop: () => stop("disk"),
    });
    const lookAgain = () => {
      const startedAt = clock.monotonic();
      if (child.pid !== undefined) backend.look(child.pid, stop);
      lookAtDisk();
      const pauseMs = PAUSE_TIMES * (clock.monotonic() - startedAt);
      next = clock.after(Math.max(LOOK_EVERY_MS, pauseMs), lookAgain);
    };
    let next = clock.after(LOOK_EVERY_MS, lookAgain);
    const deadline = clock.after(timeoutMs, () => stop("timeout"));
    return () => {
      next.cancel();
      deadline.cancel();
    };
  };
}
