// Owns the program of an ACP agent: started, listened to, stopped, and never left behind.
// AP1: it is the leader of a process group; when it ends, is stopped, or the gateway dies (also by SIGKILL),
//      the group is killed. What leaves the group by itself outlives it.
// AP2: it gets of the gateway's environment a few plain variables, and what its configuration names: no key
//      of the gateway's reaches it by accident.
// AP3: what it writes is bounded: a protocol message by its size, the error stream by its last lines.

import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { fail, ok, type Result } from "../core/errors.ts";
import { Redactor } from "../core/redact.ts";
import { ensureFolder } from "../world/folders.ts";
import { killGroup, signalGroup } from "../world/programs.ts";
import type { World } from "../world.ts";

/** Variables that every program needs to find its home, its files and its words. */
const PASSED_ON = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/** Of the error stream, for people who look for a reason. */
const ERRORS_TOLD_CHARS = 2_000;
/** More than is told, so that no half of a secret is left at the beginning. */
const ERRORS_KEPT_CHARS = 2 * ERRORS_TOLD_CHARS;
/** How long a program may take to end by itself once it was asked to. */
const STOP_GRACE_MS = 2_000;

/**
 * The shell becomes the program. Beside it waits one that holds the reading end of a pipe whose writing end
 * only the gateway has: when that is gone, so is the whole group.
 */
const GUARD = '(read -r _ <&3; kill -9 0) >/dev/null 2>&1 & exec "$@" 3<&-';

export interface AcpProgram {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. */
  readonly cwd: string;
  /** The folder is made where it is missing: a workspace is, a configured folder is not. */
  readonly makeCwd: boolean;
  /** What of its arguments and variables may be a secret: it may say them, but nobody is told. */
  readonly secrets?: readonly string[];
}

export interface AcpProcess {
  /** Masks what the program was given in confidence, in whatever it says. */
  readonly hidden: Redactor;
  readonly input: WritableStream<Uint8Array>;
  readonly output: ReadableStream<Uint8Array>;
  /** Resolves with how it ended, in words; never rejects. */
  readonly ended: Promise<string>;
  running(): boolean;
  /** Asks it to end, and kills it if it does not. Resolves when it is gone. */
  stop(): Promise<void>;
  kill(): void;
}

/** What such a program is started with, besides its own `env`. */
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
    return fail("run_failed", `${cwd} is no folder: see runtime.cwd`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return fail(
      "run_failed",
      `the agent's folder ${cwd} can't be used (${code ?? "unknown"}): see runtime.cwd`,
    );
  }
}

/** Words for the end of a program, with what it said last. */
function endWords(exitCode: number | null, signal: string | null, masked: string): string {
  const how = signal === null ? `with exit code ${exitCode}` : `by ${signal}`;
  const hint = exitCode === 127 ? "; it could not be found or started: see runtime.command" : "";
  const said = masked.slice(-ERRORS_TOLD_CHARS).toWellFormed().trim();
  return `it ended ${how}${hint}${said === "" ? "" : `; it said: ${said}`}`;
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
  if (stdin === null || stdout === null || stderr === null) throw new Error("a program without its streams");
  // Whoever ended no longer reads: its end is told by `ended`.
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
      resolve(endWords(exitCode, signal, hidden.mask(errors)));
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
      const timer = world.clock.at(world.clock.now() + STOP_GRACE_MS, kill);
      await ended;
      timer.cancel();
    },
  });
}
