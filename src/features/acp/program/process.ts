// Starts and stops the program of an ACP agent, and reads its output. The size of a protocol message and the
// stored part of stderr are limited.
// AP1: the program leads a process group; when it ends, is stopped, or the gateway dies (also by SIGKILL),
//      the group is killed. A process that leaves the group survives.
// AP2: the program gets a few harmless variables of the gateway's environment, and the variables in its
//      configuration, so that it gets no key of the gateway by accident.

import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { Redactor } from "../../../core/text/redact/redact.ts";
import { ensureFolder } from "../../../world/folders.ts";
import { killGroup, signalGroup } from "../../../world/programs.ts";
import type { World } from "../../../world.ts";

/** Variables that every program needs, such as home, paths and locale. */
const PASSED_ON = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/** Maximum characters of stderr that an error shows. */
const ERRORS_TOLD_CHARS = 2_000;
/**
 * Maximum characters of stderr that are kept: more than are shown, so that a secret cut at the beginning can
 * be redacted.
 */
const ERRORS_KEPT_CHARS = 2 * ERRORS_TOLD_CHARS;
/** How long a program may take to end after a request to stop. */
const STOP_GRACE_MS = 2_000;

/**
 * The shell replaces itself with the program. A second shell reads from a pipe that only the gateway can
 * write to: when the gateway's process ends, the read ends and the shell kills the process group.
 */
const GUARD = '(read -r _ <&3; kill -9 0) >/dev/null 2>&1 & exec "$@" 3<&-';

export interface AcpProgram {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The program's working folder, as an absolute path. */
  readonly cwd: string;
  /** Whether a missing folder is created: true for a workspace, false for a configured folder. */
  readonly makeCwd: boolean;
  /** Whether a known program is put into the mode in which it asks before it changes something. */
  readonly mustAsk: boolean;
  /** Arguments and variables that may be secrets. They are redacted from the program's output. */
  readonly secrets?: readonly string[];
}

export interface AcpProcess {
  /** Redacts the program's secrets from its output. */
  readonly hidden: Redactor;
  readonly input: WritableStream<Uint8Array>;
  readonly output: ReadableStream<Uint8Array>;
  /** Resolves with a description of the program's end. Never rejects. */
  readonly ended: Promise<string>;
  running(): boolean;
  /** Asks the program to end, then kills it. Resolves when it has ended. */
  stop(): Promise<void>;
  kill(): void;
}

/** Returns the environment of a program, without the configured `env`. */
export function plainEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const passed = PASSED_ON.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(passed), TERM: "dumb" };
}

async function checkFolder({ cwd, makeCwd }: AcpProgram): Promise<Result<void>> {
  try {
    if (makeCwd) await ensureFolder(cwd);
    if ((await stat(cwd)).isDirectory()) return ok(undefined);
    return fail("run_failed", `${cwd} is not a folder: see runtime.cwd`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return fail(
      "run_failed",
      `the agent's folder ${cwd} can't be used (${code ?? "unknown"}): see runtime.cwd`,
    );
  }
}

export async function startAcpProcess(program: AcpProgram, world: World): Promise<Result<AcpProcess>> {
  const folder = await checkFolder(program);
  if (!folder.ok) return folder;
  const child = spawn("sh", ["-c", GUARD, "sh", ...program.command], {
    cwd: program.cwd,
    env: { ...program.env },
    detached: true,
    stdio: ["pipe", "pipe", "pipe", "pipe"],
  });
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new Error("the program has no pipes");
  // A write to an ended program fails; `ended` reports the end.
  for (const stream of child.stdio) stream?.on("error", () => undefined);
  const hidden = new Redactor(program.secrets ?? []);
  let errors = "";
  stderr.setEncoding("utf8").on("data", (chunk: string) => {
    errors = `${errors}${chunk}`.slice(-ERRORS_KEPT_CHARS);
  });
  let running = true;
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => {
      running = false;
      resolve(`it could not be started: ${error.message}`);
    });
    child.once("exit", (exitCode, signal) => {
      running = false;
      killGroup(child);
      for (const stream of [child.stdio[3], stdin]) stream?.destroy();
      const how = signal === null ? `with exit code ${exitCode}` : `by ${signal}`;
      const hint = exitCode === 127 ? "; it could not be found or started: see runtime.command" : "";
      const said = hidden.mask(errors).slice(-ERRORS_TOLD_CHARS).toWellFormed().trim();
      resolve(`it ended ${how}${hint}${said === "" ? "" : `; it said: ${said}`}`);
    });
  });
  const kill = (): void => killGroup(child);
  return ok({
    input: Writable.toWeb(stdin) as WritableStream<Uint8Array>,
    output: Readable.toWeb(stdout) as ReadableStream<Uint8Array>,
    ended,
    hidden,
    running: () => running,
    kill,
    async stop() {
      if (!running) return;
      stdin.end();
      signalGroup(child, "SIGTERM");
      const timer = world.clock.after(STOP_GRACE_MS, kill);
      await ended;
      timer.cancel();
    },
  });
}
