// Owns the looks at a contained program while it runs: its time, its disk, and what the backend adds.

import type { World } from "../world.ts";
import { type DiskBook, diskLook } from "./disk.ts";
import type { NetworkPeers } from "./peers.ts";
import type { Ending, ProcessPlan } from "./process.ts";
import type { Program, SandboxNeeds } from "./sandbox.ts";
import type { CacheView } from "./system-view.ts";
import type { Carrier } from "./uplink.ts";

/** What any backend is given to make a sandbox of. */
export interface Ground {
  readonly world: World;
  readonly needs: SandboxNeeds;
  /** The workspace's real path, and the name that settings give it. */
  readonly workspace: string;
  readonly namedWorkspace: string;
  /** The gateway's Node and the folder of its code. */
  readonly node: string;
  readonly code: string;
  readonly codeCache?: CodeCache;
  /** Of the backend's own program, never of what runs inside: where it is found, where its daemon is. */
  readonly environment: Readonly<Record<string, string>>;
  readonly disk: DiskBook;
  /** Told of every carrier of a network. */
  readonly peers?: NetworkPeers;
  /** The carrier that works here, where the program has a network. */
  readonly carrier?: Carrier;
}

/**
 * Where Node keeps what it compiled of our scripts, so that the next start takes a third of the time. Only a
 * script's first run may write it. Each workspace has its own: a command that misleads that run by swapping
 * folders under it reaches nobody else's code.
 */
export interface CodeCache {
  readonly dir: string;
  /** Files of the scripts that have run. */
  readonly warm: Set<string>;
}

/** The cache as one run of a program may use it; none for what is not ours. */
export function codeCacheFor(ground: Pick<Ground, "codeCache">, program: Program): CacheView | undefined {
  const { codeCache } = ground;
  if (codeCache === undefined || program.kind !== "script") return undefined;
  const writable = !codeCache.warm.has(program.file);
  codeCache.warm.add(program.file);
  return { dir: codeCache.dir, writable };
}

type Stop = (why: Ending) => void;

const LOOK_EVERY_MS = 50;
/** A look that takes long is followed by a pause this many times as long: the gateway has other work. */
const PAUSE_TIMES = 10;

/** `look`: what else is looked at, given the backend's process. */
export function watchRun(
  ground: Ground,
  usedAtStart: number,
  timeoutMs: number,
  look: (pid: number, stop: Stop) => void,
): NonNullable<ProcessPlan["watch"]> {
  const { clock } = ground.world;
  return (child, stop) => {
    const lookAtDisk = diskLook(ground.disk, ground.needs.diskMb, usedAtStart, () => stop("disk"));
    const lookAgain = () => {
      const startedAt = clock.monotonic();
      if (child.pid !== undefined) look(child.pid, stop);
      lookAtDisk();
      const pauseMs = PAUSE_TIMES * (clock.monotonic() - startedAt);
      next = clock.at(clock.now() + Math.max(LOOK_EVERY_MS, pauseMs), lookAgain);
    };
    let next = clock.at(clock.now() + LOOK_EVERY_MS, lookAgain);
    const deadline = clock.at(clock.now() + timeoutMs, () => stop("timeout"));
    return () => {
      next.cancel();
      deadline.cancel();
    };
  };
}
