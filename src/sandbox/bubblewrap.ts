// Implements the sandbox with bubblewrap: new namespaces of every kind, the file system of system-view.ts and
// the system calls of seccomp.ts. The kernel enforces the limits if it can, otherwise a watch from outside
// does.
// B1: the first process inside is a shell that Parley starts. It exits when the program exits. The kernel
// then kills all other processes of the namespace. Bubblewrap waits for the shell, so it exits only after
// that.
// B2: a program is stopped by killing that first process, so B1 applies to a stop, too. When the gateway
// dies, bubblewrap dies, and the first process with it.
// Limitations:
// - Memory: the total is checked 20 times a second, so a fast program can take some hundred megabytes more
// before it is stopped. The kernel's own limit applies to each process and is generous, because it counts
// reserved memory. Memory that is neither resident nor private (a shared mapping given back page by page) and
// kernel buffers are not counted: unread data in pipes and sockets is limited only by the number of open
// files. When memory runs out, the kernel kills sandboxed processes first, but a process can revoke this.
// - Processes: the kernel's limit on a user's processes does not apply to root (process/wall.ts replaces it),
// nor to a single sandbox on kernels before 5.14. If neither applies, only the watch remains, and a fork bomb
// may create thousands of processes before it is killed.
// - Files: the only user inside is the gateway's user outside, without its privileges. For a gateway that
// runs as root, that user owns everything that is mounted, so run the gateway as an ordinary user.
// - Disk: see disk.ts. Network: either none or full access, see uplink.ts. Processor time: only `timeoutMs`
// limits it.

import type { ChildProcess } from "node:child_process";
import { release } from "node:os";
import { join, relative } from "node:path";
import { optional } from "../core/optional.ts";
import { ok, type Result } from "../core/shapes/errors.ts";
import { killGroup } from "../world/programs.ts";
import type { World } from "../world.ts";
import { type ProcessPlan, runProcess } from "./process/process.ts";
import { childrenOf, mayHideFiles, roughMemory, treeBelow, usesMoreThan } from "./process/tree.ts";
import { buildProcessWall, type ProcessWall } from "./process/wall.ts";
import { guardArguments, guardedRepository, type ProtectedPath, REPOSITORY_GUARD } from "./repository.ts";
import {
  backendFailure,
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
import { type BackendWatch, codeCacheFor, type SandboxInputs, watchRun } from "./watch.ts";

const MEGABYTE = 1024 * 1024;
/** Added to the kernel's limit for memory that programs reserve but never use: Node alone reserves 512 MB. */
const RESERVED_MB = 640;
const OPEN_FILES_MAX = 1_024;
/**
 * Interval between attempts to kill the first process, which does not exist until bubblewrap's setup of about
 * 10 ms is done.
 */
const KILL_AGAIN_MS = 5;
const KILL_TRIES_MAX = 20;
/**
 * Matches errors of bubblewrap or of Parley's shells, which occur before a script starts. A script reports
 * its own errors.
 */
const SETUP_FAILED = /^(?:bwrap|sandbox): /;
/** The first file descriptor through which a child may get data. */
const FIRST_DATA = 3;

/**
 * Sets the limits (ulimit) of all processes inside, then runs the program. Errors of a shell command are part
 * of its output.
 */
const FIRST_PROCESS = [
  // Closes descriptors inherited from the gateway: through an open folder a program could leave the sandbox.
  'for fd in /proc/$$/fd/*; do fd=${fd##*/}; if [ "$fd" -gt 2 ]; then eval "exec $fd>&-"; fi; done',
  "echo 1000 > /proc/self/oom_score_adj",
  // Makes a write above the file size limit fail, instead of killing the shell.
  "trap '' XFSZ",
  "ulimit -c 0",
  'ulimit -n "$1"',
  'ulimit -d "$2"',
  'ulimit -f "$3"',
  'if [ "$4" != 0 ]; then ulimit -u "$4"; fi',
  "shift 4",
  // The trailing `exit` keeps the shell from being replaced by the program (an implicit exec): the shell must
  // end last (B1).
].join(" && ");
const JOINED = `${REPOSITORY_GUARD}\n${FIRST_PROCESS} && exec 2>&1 && { "$@"; exit $?; }`;
const APART = `${REPOSITORY_GUARD}\n${FIRST_PROCESS} && { "$@"; exit $?; }`;

/** Kills the first process inside. Tries again while it does not exist yet. */
function killInside(child: ChildProcess, world: World, triesLeft = KILL_TRIES_MAX): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const inside = childrenOf(child.pid);
  for (const pid of inside) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has already exited.
    }
  }
  if (inside.length > 0) return;
  if (triesLeft === 0) killGroup(child);
  else world.clock.after(KILL_AGAIN_MS, () => killInside(child, world, triesLeft - 1));
}

/** Checks the processes and the memory of a run. watch.ts checks time and disk. */
function lookInside(needs: SandboxNeeds, clock: World["clock"]): BackendWatch["look"] {
  // One more than configured, because the first process is Parley's own shell.
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
    void usesMoreThan(processes, memoryMax).then((tooMuch) => {
      weighing = false;
      // The next check waits as long as this one took. So the checks use at most half of a processor core,
      // even if they are slow.
      restUntil = 2 * clock.monotonic() - startedAt;
      if (tooMuch) stop("memory");
    });
  };
}

/** Enters the control group, then runs the command. */
const ENTER = ["-c", 'echo $$ > "$1" && shift && exec "$@"', "sandbox"];

/**
 * Starts bubblewrap. If the sandbox has a control group or an uplink (uplink.ts: its own network), bubblewrap
 * starts inside them.
 */
function launchCommand(found: Found, args: readonly string[]): Pick<ProcessPlan, "file" | "args"> {
  const command = [...(found.uplink?.enter ?? []), "bwrap", ...args];
  if (found.wall !== undefined) return { file: "/bin/sh", args: [...ENTER, found.wall.entrance, ...command] };
  const [file = "bwrap", ...rest] = command;
  return { file, args: rest };
}

/** State of the machine and the workspace when a run starts. */
interface Found {
  readonly full: boolean;
  readonly wall: ProcessWall | undefined;
  readonly held: readonly ProtectedPath[];
  readonly uplink: Uplink | undefined;
}

function planOf(
  ground: SandboxInputs,
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
    ...optional({ cache }),
    held,
  };
  const environment = containedEnvironment(workspace, limits.searchPath, cache);
  // bash counts file sizes in KiB.
  const fileKilobytes = full ? 0 : needs.diskMb * 1024;
  // Since 5.14, Linux counts processes for each user namespace, and before for the whole machine.
  const [major = 0, minor = 0] = release().split(".").map(Number);
  const processes = major > 5 || (major === 5 && minor >= 14) ? needs.processesMax + 1 : 0;
  const ulimits = [OPEN_FILES_MAX, (needs.memoryMb + RESERVED_MB) * 1024, fileKilobytes, processes].map(
    String,
  );
  const shell = ["bash", "--noprofile", "--norc", "-c", program.kind === "shell" ? JOINED : APART, "sandbox"];
  return {
    ...launchCommand(found, [
      ...["--unshare-all", "--unshare-user", "--disable-userns"],
      // Keep the network namespace in which bubblewrap is started, which is that of the uplink.
      ...(found.uplink === undefined ? [] : ["--share-net"]),
      ...["--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"],
      ...["--uid", "1000", "--gid", "1000", "--hostname", "sandbox"],
      ...filters.flatMap((_, index) => ["--seccomp", String(FIRST_DATA + index)]),
      ...mountArguments(view, FIRST_DATA + filters.length),
      "--clearenv",
      ...Object.entries(environment).flatMap(([name, value]) => ["--setenv", name, value]),
      "--",
      ...shell,
      ...guardArguments(held),
      ...ulimits,
      ...(program.kind === "shell"
        ? ["bash", "--noprofile", "--norc", "-c", program.command]
        : [CONTAINED_NODE, "--no-warnings", join(CONTAINED_CODE, relative(ground.code, program.file))]),
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

export function bubblewrapSandbox(ground: SandboxInputs): Sandbox {
  return {
    kind: "bubblewrap",
    ...optional({ carrier: ground.carrier }),
    async run(program: Program, limits: RunLimits): Promise<Result<ContainedEnd>> {
      const guarded = await guardedRepository(ground.workspace, ground.needs);
      if (!guarded.ok) return guarded;
      const { usedBytes, full } = await ground.disk.atStart(ground.needs.diskMb, limits.signal);
      const uplink = await (ground.needs.network
        ? openUplink(ground.environment, ground.peers, ground.carrier)
        : ok(undefined));
      if (!uplink.ok) return uplink;
      // Bubblewrap and the first process inside count as well.
      const wall = buildProcessWall(ground.world.ids.uuid(), ground.needs.processesMax + 2);
      const found = { full, wall, held: guarded.value, uplink: uplink.value };
      try {
        const watch = watchRun(ground, usedBytes, limits.timeoutMs, {
          look: lookInside(ground.needs, ground.world.clock),
          mayHideFiles: (pid) => mayHideFiles(treeBelow(pid, ground.needs.processesMax + 1).processes),
        });
        const end = await runProcess({ ...planOf(ground, program, limits, found), watch });
        const failed = end.ending === "ended" && end.exitCode !== 0 && end.errors.trim();
        if (failed && (program.kind === "shell" || SETUP_FAILED.test(failed)))
          return backendFailure(`the program was not run: ${failed}`);
        return ok({ ...end, full });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return backendFailure(`bubblewrap could not be started: ${reason}`);
      } finally {
        uplink.value?.close();
        wall?.remove();
      }
    },
  };
}
