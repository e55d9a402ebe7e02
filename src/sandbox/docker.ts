// Owns containment by docker's command line: one short-lived container for every program.
// D1: the image is never fetched on the way: a run that waits minutes for a download looks like one that
//     hangs.
// D2: to stop a program is to kill its container; the client, which waits for it, then ends by itself (S5
//     of sandbox.ts).
// What holds otherwise than with bubblewrap: processes and memory are walls, kept by the kernel's
// control groups; the system that is seen is the image's, not the host's; `network` is docker's bridge,
// where the host's loopback can't be reached. System calls are refused by docker's own list, not by
// seccomp.ts: a program may leave a file with a setuid bit in the workspace, owned by the gateway's user.
// When the gateway is killed a container lives on until its time is over.

import { type ChildProcess, execFile } from "node:child_process";
import { join, relative } from "node:path";
import { fail, ok, type Result } from "../core/errors.ts";
import { killGroup } from "../world/programs.ts";
import { type ProcessPlan, runProcess } from "./process.ts";
import { guardArguments, guardedRepository, type Held, REPOSITORY_GUARD } from "./repository.ts";
import { type ContainedEnd, type Program, type RunLimits, type Sandbox, temporaryMbOf } from "./sandbox.ts";
import { CONTAINED_CACHE, CONTAINED_CODE, containedEnvironment } from "./system-view.ts";
import { codeCacheFor, type Ground, watchRun } from "./watch.ts";

/** Has bash, coreutils and Node 24. */
export const DOCKER_IMAGE_DEFAULT = "node:24-bookworm-slim";

const MEGABYTE = 1024 * 1024;
const OPEN_FILES_MAX = 1_024;
const SHARED_MEMORY_MB = 64;
/** Docker's own failures; a program may end so too, but then writes nothing to the client's errors. */
const DOCKER_FAILED = 125;
const KILL_AGAIN_MS = 200;
const KILL_TRIES_MAX = 25;

const JOINED = `${REPOSITORY_GUARD}
limit=$1; shift; exec 2>&1; timeout --signal=KILL "$limit" "$@"; exit $?`;
const APART = `${REPOSITORY_GUARD}
limit=$1; shift; timeout --signal=KILL "$limit" "$@"; exit $?`;

/** One field of a mount; its list is read as CSV. */
const field = (name: string, value: string): string => `"${`${name}=${value}`.replaceAll('"', '""')}"`;

function bind(source: string, target: string, readOnly: boolean): string[] {
  const fields = ["type=bind", field("source", source), field("target", target)];
  return ["--mount", [...fields, ...(readOnly ? ["readonly"] : [])].join(",")];
}

function programArguments(program: Program, code: string): string[] {
  if (program.kind === "shell") return ["bash", "--noprofile", "--norc", "-c", program.command];
  return ["node", "--no-warnings", join(CONTAINED_CODE, relative(code, program.file))];
}

/** The arguments of `docker` for one program. */
export function dockerArguments(
  ground: Omit<Ground, "world" | "disk" | "environment">,
  program: Program,
  limits: Pick<RunLimits, "timeoutMs" | "searchPath">,
  container: { name: string; full: boolean; user?: string; held: readonly Held[] },
): string[] {
  const { needs, workspace } = ground;
  const { held } = container;
  const cache = codeCacheFor(ground, program);
  const environment = containedEnvironment(workspace, limits.searchPath, cache);
  const fileBytes = container.full ? 0 : needs.diskMb * MEGABYTE;
  const memory = `${needs.memoryMb}m`;
  const seconds = String(Math.ceil(limits.timeoutMs / 1000) + 1);
  return [
    ...["run", "--rm", "--interactive", "--name", container.name, "--pull", "never", "--log-driver", "none"],
    ...["--network", needs.network ? "bridge" : "none", "--hostname", "sandbox"],
    ...["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"],
    ...["--pids-limit", String(needs.processesMax + 2), "--memory", memory, "--memory-swap", memory],
    ...["--ulimit", "core=0", "--ulimit", `nofile=${OPEN_FILES_MAX}`, "--ulimit", `fsize=${fileBytes}`],
    ...["--shm-size", `${SHARED_MEMORY_MB}m`],
    ...["--tmpfs", `/tmp:rw,nosuid,nodev,exec,mode=1777,size=${temporaryMbOf(needs)}m`],
    ...(container.user === undefined ? [] : ["--user", container.user]),
    ...bind(workspace, workspace, false),
    ...held.flatMap(({ path, readOnly }) => bind(path, path, readOnly)),
    ...bind(ground.code, CONTAINED_CODE, true),
    ...(cache === undefined ? [] : bind(cache.dir, CONTAINED_CACHE, !cache.writable)),
    ...["--workdir", workspace],
    ...Object.entries(environment).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
    ...["--entrypoint", "bash", needs.image ?? DOCKER_IMAGE_DEFAULT],
    ...["--noprofile", "--norc", "-c", program.kind === "shell" ? JOINED : APART, "sandbox"],
    ...guardArguments(held),
    seconds,
    ...programArguments(program, ground.code),
  ];
}

/** Kills the container; while there is none yet, tries again. The client ends with it. */
function killContainer(name: string, child: ChildProcess, ground: Ground): void {
  const { clock } = ground.world;
  const env = ground.environment;
  const attempt = (triesLeft: number): void => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    execFile("docker", ["kill", name], { env }, (error) => {
      if (error === null) return;
      if (triesLeft === 0) killGroup(child);
      else clock.at(clock.now() + KILL_AGAIN_MS, () => attempt(triesLeft - 1));
    });
  };
  attempt(KILL_TRIES_MAX);
}

/** Who the program is inside: the gateway's user, so that files in the workspace stay its own. */
function userHere(): { user?: string } {
  const [user, group] = [process.getuid?.(), process.getgid?.()];
  // Docker on a Mac maps users by itself.
  if (user === undefined || group === undefined || process.platform === "darwin") return {};
  return { user: `${user}:${group}` };
}

export function dockerSandbox(ground: Ground): Sandbox {
  return {
    kind: "docker",
    async run(program: Program, limits: RunLimits): Promise<Result<ContainedEnd>> {
      const guarded = await guardedRepository(ground.workspace, ground.needs);
      if (!guarded.ok) return guarded;
      const { usedBytes, full } = await ground.disk.atStart(ground.needs.diskMb, limits.signal);
      const name = `parley-${ground.world.ids.uuid()}`;
      const plan: ProcessPlan = {
        file: "docker",
        args: dockerArguments(ground, program, limits, {
          ...{ name, full, held: guarded.value },
          ...userHere(),
        }),
        cwd: "/",
        env: ground.environment,
        ...(program.kind === "script" ? { input: program.input } : {}),
        outputMaxBytes: limits.outputMaxBytes,
        signal: limits.signal,
        kill: (child) => killContainer(name, child, ground),
        watch: watchRun(ground, usedBytes, limits.timeoutMs, () => undefined),
      };
      try {
        const end = await runProcess(plan);
        const failed = end.ending === "ended" && end.exitCode === DOCKER_FAILED && end.errors.trim();
        if (failed) return fail("sandbox_unavailable", `docker did not run the program: ${failed}`);
        return ok({ ...end, full });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return fail("sandbox_unavailable", `docker could not be started: ${reason}`);
      }
    },
  };
}
