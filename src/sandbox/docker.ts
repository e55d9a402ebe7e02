// Implements the sandbox with docker's command line: one short-lived container for each program.
// D1: the image is never downloaded during a run: waiting for minutes would look like a hang.
// D2: a program is stopped by killing its container; the client, which waits for it, then exits (S5 of
// sandbox.ts).
// Differences from bubblewrap: the kernel's control groups limit processes and memory; programs see the
// image's system, not the host's; `network` is docker's bridge, from which the host's loopback is
// unreachable. System calls are restricted by docker's own list, not by seccomp.ts: a program may leave a
// file with a setuid bit in the workspace, owned by the gateway's user.
// If the gateway is killed, a container keeps running until its time limit.

import { type ChildProcess, execFile } from "node:child_process";
import { join, relative } from "node:path";
import { ok, type Result } from "../core/shapes/errors.ts";
import { killGroup } from "../world/programs.ts";
import { type ProcessPlan, runProcess } from "./process/process.ts";
import { guardArguments, guardedRepository, type ProtectedPath, REPOSITORY_GUARD } from "./repository.ts";
import {
  backendFailure,
  type ContainedEnd,
  type Program,
  type RunLimits,
  type Sandbox,
  temporaryMbOf,
} from "./sandbox.ts";
import { CONTAINED_CACHE, CONTAINED_CODE, containedEnvironment } from "./system-view.ts";
import { type BackendWatch, codeCacheFor, type SandboxInputs, watchRun } from "./watch.ts";

/** The default image, which contains bash, coreutils and Node 24. */
export const DOCKER_IMAGE_DEFAULT = "node:24-bookworm-slim";

const MEGABYTE = 1024 * 1024;
const OPEN_FILES_MAX = 1_024;
const SHARED_MEMORY_MB = 64;
/**
 * Exit code of docker's own failures. A program may exit with the same code, but then the client writes no
 * errors.
 */
const DOCKER_FAILED = 125;
const KILL_AGAIN_MS = 200;
const KILL_TRIES_MAX = 25;

const JOINED = `${REPOSITORY_GUARD}
limit=$1; shift; exec 2>&1; timeout --signal=KILL "$limit" "$@"; exit $?`;
const APART = `${REPOSITORY_GUARD}
limit=$1; shift; timeout --signal=KILL "$limit" "$@"; exit $?`;

/** Quotes one field of a mount, because docker parses the list as CSV. */
const field = (name: string, value: string): string => `"${`${name}=${value}`.replaceAll('"', '""')}"`;

function bind(source: string, target: string, readOnly: boolean): string[] {
  const fields = ["type=bind", field("source", source), field("target", target)];
  return ["--mount", [...fields, ...(readOnly ? ["readonly"] : [])].join(",")];
}

/** Returns the arguments of `docker` for one program. */
export function dockerArguments(
  ground: Omit<SandboxInputs, "world" | "disk" | "environment">,
  program: Program,
  limits: Pick<RunLimits, "timeoutMs" | "searchPath">,
  container: { name: string; full: boolean; user?: string; held: readonly ProtectedPath[] },
): string[] {
  const { needs, workspace } = ground;
  const { held } = container;
  const cache = codeCacheFor(ground, program);
  const environment = containedEnvironment(workspace, limits.searchPath, cache);
  const fileBytes = container.full ? 0 : needs.diskMb * MEGABYTE;
  const memory = `${needs.memoryMb}m`;
  const seconds = String(Math.ceil(limits.timeoutMs / 1000) + 1);
  return [
    ["run", "--rm", "--interactive", "--name", container.name, "--pull", "never", "--log-driver", "none"],
    ["--network", needs.network ? "bridge" : "none", "--hostname", "sandbox"],
    ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"],
    ["--pids-limit", String(needs.processesMax + 2), "--memory", memory, "--memory-swap", memory],
    ["--ulimit", "core=0", "--ulimit", `nofile=${OPEN_FILES_MAX}`, "--ulimit", `fsize=${fileBytes}`],
    ["--shm-size", `${SHARED_MEMORY_MB}m`],
    ["--tmpfs", `/tmp:rw,nosuid,nodev,exec,mode=1777,size=${temporaryMbOf(needs)}m`],
    container.user === undefined ? [] : ["--user", container.user],
    bind(workspace, workspace, false),
    held.flatMap(({ path, readOnly }) => bind(path, path, readOnly)),
    bind(ground.code, CONTAINED_CODE, true),
    cache === undefined ? [] : bind(cache.dir, CONTAINED_CACHE, !cache.writable),
    ["--workdir", workspace],
    Object.entries(environment).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
    ["--entrypoint", "bash", needs.image ?? DOCKER_IMAGE_DEFAULT],
    ["--noprofile", "--norc", "-c", program.kind === "shell" ? JOINED : APART, "sandbox"],
    guardArguments(held),
    [seconds],
    program.kind === "shell"
      ? ["bash", "--noprofile", "--norc", "-c", program.command]
      : ["node", "--no-warnings", join(CONTAINED_CODE, relative(ground.code, program.file))],
  ].flat();
}

/** Kills the container, which makes the client exit. Tries again while the container does not exist yet. */
function killContainer(name: string, child: ChildProcess, ground: SandboxInputs): void {
  const { clock } = ground.world;
  const env = ground.environment;
  const attempt = (triesLeft: number): void => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    execFile("docker", ["kill", name], { env }, (error) => {
      if (error === null) return;
      if (triesLeft === 0) killGroup(child);
      else clock.after(KILL_AGAIN_MS, () => attempt(triesLeft - 1));
    });
  };
  attempt(KILL_TRIES_MAX);
}

/**
 * Returns the option that runs the program as the gateway's user, so that this user owns new files in the
 * workspace.
 */
function userHere(): { user?: string } {
  const [user, group] = [process.getuid?.(), process.getgid?.()];
  // Docker on a Mac maps users itself.
  if (user === undefined || group === undefined || process.platform === "darwin") return {};
  return { user: `${user}:${group}` };
}

/** The processes of a container are invisible from here, so each may hide files. */
const UNSEEN: BackendWatch = { look: () => {}, mayHideFiles: () => true };

export function dockerSandbox(ground: SandboxInputs): Sandbox {
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
          name,
          full,
          held: guarded.value,
          ...userHere(),
        }),
        cwd: "/",
        env: ground.environment,
        ...(program.kind === "script" ? { input: program.input } : {}),
        outputMaxBytes: limits.outputMaxBytes,
        signal: limits.signal,
        kill: (child) => killContainer(name, child, ground),
        watch: watchRun(ground, usedBytes, limits.timeoutMs, UNSEEN),
      };
      try {
        const end = await runProcess(plan);
        const failed = end.ending === "ended" && end.exitCode === DOCKER_FAILED && end.errors.trim();
        if (failed) return backendFailure(`docker did not run the program: ${failed}`);
        return ok({ ...end, full });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return backendFailure(`docker could not be started: ${reason}`);
      }
    },
  };
}
