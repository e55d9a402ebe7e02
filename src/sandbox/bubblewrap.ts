// Owns containment by bubblewrap: new namespaces of every kind, the view of system-view.ts, the system
// calls of seccomp.ts, limits of the kernel where there are some and a watch from outside where there are
// none.
// B1: the first process inside is a shell of ours. When the program ends it ends, and the kernel ends every
//     other process of its namespace before bubblewrap, which waits for it, can end.
// B2: to stop a program is to kill that first process, so B1 holds for a stop too. When the gateway dies,
//     bubblewrap dies with it, and the first process with bubblewrap.
// What holds less than one might think:
// - Memory: what all use together is watched, 20 looks a second, so a fast program takes some hundred
//   megabytes more before it is stopped. The kernel's own limit is for each process, and wide: it counts
//   what is only reserved. Memory that is neither resident nor private (a shared mapping given back page by
//   page) and buffers in the kernel are not counted: what lies unread in pipes and sockets is bounded by open
//   files alone. The kernel is told to end contained processes before any other, which they can take back.
// - Processes: the kernel's limit on a user's processes does not hold for root (process-wall.ts is in its
//   place), nor, for each sandbox, on kernels before 5.14. Where neither holds only the watch stands, and a
//   fork bomb may reach thousands before it is cleared away.
// - Files: the one user inside is the gateway's user outside, without its privileges. As root, that is the
//   owner of all that is bound in, so for a gateway an ordinary user is the better choice.
// - Disk: see disk.ts. Network: all or nothing, see uplink.ts. Processor time: only `timeoutMs`.

import type { ChildProcess } from "node:child_process";
import { release } from "node:os";
import { join, relative } from "node:path";
import { fail, ok, type Result } from "../core/errors.ts";
import { killGroup } from "../world/programs.ts";
import type { World } from "../world.ts";
import { type ProcessPlan, runProcess } from "./process.ts";
import { childrenOf, exactMemory, roughMemory, type Tree, treeBelow } from "./process-tree.ts";
import { buildProcessWall, type ProcessWall } from "./process-wall.ts";
import { guardArguments, guardedRepository, type Held, REPOSITORY_GUARD } from "./repository.ts";
import {
  type ContainedEnd,
  type Program,
  type RunLimits,
  type Sandbox,
  type SandboxNeeds,
  temporaryMbOf,
} from "./sandbox.ts";
import { seccompFilter } from "./seccomp.ts";
import {
  CONTAINED_CODE,
  CONTAINED_NODE,
  containedEnvironment,
  mountArguments,
  OWN_FILES,
  type View,
} from "./system-view.ts";
import { openUplink, type Uplink } from "./uplink.ts";
import { codeCacheFor, type Ground, watchRun } from "./watch.ts";

const MEGABYTE = 1024 * 1024;
/** Room in the kernel's limit for what programs reserve and never use: Node alone takes 512 MB so. */
const RESERVED_MB = 640;
const OPEN_FILES_MAX = 1_024;
/** Bubblewrap's own setup takes about 10 ms; until then there is no first process to kill. */
const KILL_AGAIN_MS = 5;
const KILL_TRIES_MAX = 20;
/** How an error starts that came before a script, which writes its own: bubblewrap's, or our shells'. */
const SETUP_FAILED = /^(?:bwrap|sandbox): /;
/** The first file descriptor that a child may read data from. */
const FIRST_DATA = 3;

/** Ulimits that hold for everything inside, then the program. A shell command's errors join its output. */
const FIRST_PROCESS = [
  // What the gateway itself was started with may be open here: a folder among it would be a way out.
  'for fd in /proc/$$/fd/*; do fd=${fd##*/}; if [ "$fd" -gt 2 ]; then eval "exec $fd>&-"; fi; done',
  "echo 1000 > /proc/self/oom_score_adj",
  // Too large a file is an error of the write, not the end of the shell.
  "trap '' XFSZ",
  "ulimit -c 0",
  'ulimit -n "$1"',
  'ulimit -d "$2"',
  'ulimit -f "$3"',
  'if [ "$4" != 0 ]; then ulimit -u "$4"; fi',
  "shift 4",
  // `exit` keeps the shell from becoming the program: it is the one whose end ends all (B1).
].join(" && ");
const JOINED = `${REPOSITORY_GUARD}\n${FIRST_PROCESS} && exec 2>&1 && { "$@"; exit $?; }`;
const APART = `${REPOSITORY_GUARD}\n${FIRST_PROCESS} && { "$@"; exit $?; }`;

/** Counts of processes are kept for each user namespace since Linux 5.14; before, for the whole machine. */
function countsProcessesInside(): boolean {
  const [major = 0, minor = 0] = release().split(".").map(Number);
  return major > 5 || (major === 5 && minor >= 14);
}

function programArguments(program: Program, code: string): string[] {
  if (program.kind === "shell") return ["bash", "--noprofile", "--norc", "-c", program.command];
  return [CONTAINED_NODE, "--no-warnings", join(CONTAINED_CODE, relative(code, program.file))];
}

/** Kills the first process inside; while there is none yet, tries again. */
function killInside(child: ChildProcess, world: World, triesLeft = KILL_TRIES_MAX): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const inside = childrenOf(child.pid);
  for (const pid of inside) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has just ended.
    }
  }
  if (inside.length > 0) return;
  if (triesLeft === 0) killGroup(child);
  else world.clock.at(world.clock.now() + KILL_AGAIN_MS, () => killInside(child, world, triesLeft - 1));
}

/** Twice: a process about to become another program has its parent's memory for a moment: counted double. */
async function weighsMore(processes: Tree["processes"], bytesMax: number): Promise<boolean> {
  if ((await exactMemory(processes, bytesMax)) <= bytesMax) return false;
  return (await exactMemory(processes, bytesMax)) > bytesMax;
}

/** What the watch of one run looks at besides time and disk. */
function lookInside(needs: SandboxNeeds, clock: World["clock"]): Parameters<typeof watchRun>[3] {
  // The first process, our shell, is not the program's.
  const threadsMax = needs.processesMax + 1;
  const memoryMax = needs.memoryMb * MEGABYTE;
  let weighing = false;
  let restUntil = 0;
  return (pid, stop) => {
    const { processes, threads } = treeBelow(pid, threadsMax);
    if (threads > threadsMax) return stop("processes");
    if (weighing || clock.monotonic() < restUntil || roughMemory(processes) <= memoryMax) return;
    weighing = true;
    const startedAt = clock.monotonic();
    void weighsMore(processes, memoryMax).then((tooMuch) => {
      weighing = false;
      // As long a rest as the work was: a program that makes itself slow to weigh takes half of one thread.
      restUntil = 2 * clock.monotonic() - startedAt;
      if (tooMuch) stop("memory");
    });
  };
}

/** `shareNetwork`: that of the uplink, in which bubblewrap is started. */
function namespaceArguments(shareNetwork: boolean): string[] {
  return [
    ...["--unshare-all", "--unshare-user", "--disable-userns"],
    ...(shareNetwork ? ["--share-net"] : []),
    ...["--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"],
    ...["--uid", "1000", "--gid", "1000", "--hostname", "sandbox"],
  ];
}

/** Goes behind the wall, then becomes what is started there. */
const ENTER = ["-c", 'echo $$ > "$1" && shift && exec "$@"', "sandbox"];

/** Starts bubblewrap behind the wall and in the network of the uplink, as far as there are any. */
function started(found: Found, args: readonly string[]): Pick<ProcessPlan, "file" | "args"> {
  const command = [...(found.uplink?.enter ?? []), "bwrap", ...args];
  if (found.wall !== undefined) return { file: "/bin/sh", args: [...ENTER, found.wall.entrance, ...command] };
  const [file = "bwrap", ...rest] = command;
  return { file, args: rest };
}

/** How one run finds the place. */
interface Found {
  readonly full: boolean;
  readonly wall: ProcessWall | undefined;
  readonly held: readonly Held[];
  readonly uplink: Uplink | undefined;
}

function planOf(
  ground: Ground,
  program: Program,
  limits: RunLimits,
  found: Found,
): Omit<ProcessPlan, "watch"> {
  const { needs, workspace } = ground;
  const { full, held } = found;
  const filter = seccompFilter(process.arch);
  const filters = filter === undefined ? [] : [filter];
  const cache = codeCacheFor(ground, program);
  const view: View = {
    ...ground,
    network: needs.network,
    temporaryMb: temporaryMbOf(needs),
    ...(cache === undefined ? {} : { cache }),
    held,
  };
  const environment = containedEnvironment(workspace, limits.searchPath, cache);
  // bash counts file sizes in KiB.
  const fileKilobytes = full ? 0 : needs.diskMb * 1024;
  const processes = countsProcessesInside() ? needs.processesMax + 1 : 0;
  const ulimits = [OPEN_FILES_MAX, (needs.memoryMb + RESERVED_MB) * 1024, fileKilobytes, processes].map(
    String,
  );
  return {
    ...started(found, [
      ...namespaceArguments(found.uplink !== undefined),
      ...filters.flatMap((_, index) => ["--seccomp", String(FIRST_DATA + index)]),
      ...mountArguments(view, FIRST_DATA + filters.length),
      "--clearenv",
      ...Object.entries(environment).flatMap(([name, value]) => ["--setenv", name, value]),
      "--",
      ...["bash", "--noprofile", "--norc", "-c", program.kind === "shell" ? JOINED : APART, "sandbox"],
      ...guardArguments(held),
      ...ulimits,
      ...programArguments(program, ground.code),
    ]),
    cwd: "/",
    env: ground.environment,
    data: [...filters, ...Object.values(OWN_FILES)],
    ...(program.kind === "script" ? { input: program.input } : {}),
    outputMaxBytes: limits.outputMaxBytes,
    signal: limits.signal,
    kill: (child) => killInside(child, ground.world),
  };
}

async function uplinkFor({
  needs,
  environment,
  peers,
  carrier,
}: Ground): Promise<Result<Uplink | undefined>> {
  return needs.network ? openUplink(environment, peers, carrier) : ok(undefined);
}

export function bubblewrapSandbox(ground: Ground): Sandbox {
  return {
    kind: "bubblewrap",
    ...(ground.carrier === undefined ? {} : { carrier: ground.carrier }),
    async run(program: Program, limits: RunLimits): Promise<Result<ContainedEnd>> {
      const guarded = await guardedRepository(ground.workspace, ground.needs);
      if (!guarded.ok) return guarded;
      const { usedBytes, full } = await ground.disk.atStart(ground.needs.diskMb, limits.signal);
      const uplink = await uplinkFor(ground);
      if (!uplink.ok) return uplink;
      // Bubblewrap and the first process inside are behind the wall too.
      const wall = buildProcessWall(ground.world.ids.uuid(), ground.needs.processesMax + 2);
      const found = { full, wall, held: guarded.value, uplink: uplink.value };
      try {
        const watch = watchRun(
          ground,
          usedBytes,
          limits.timeoutMs,
          lookInside(ground.needs, ground.world.clock),
        );
        const end = await runProcess({ ...planOf(ground, program, limits, found), watch });
        const failed = end.ending === "ended" && end.exitCode !== 0 && end.errors.trim();
        if (failed && (program.kind === "shell" || SETUP_FAILED.test(failed)))
          return fail("sandbox_unavailable", `the program was not run: ${failed}`);
        return ok({ ...end, full });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return fail("sandbox_unavailable", `bubblewrap could not be started: ${reason}`);
      } finally {
        uplink.value?.close();
        wall?.remove();
      }
    },
  };
}
