// Runs one process from start to exit: writes its input, keeps a part of its output, and reports why it
// ended. Used for all programs, with and without sandbox; only the way to kill them differs.
// P1: the process gets exactly the given environment, input and open files, and nothing else from the
// gateway.
// P2: the first reason to stop the process is reported.
// Its output is limited: both the part that is kept, and the amount that it may write before it is stopped.

import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { killGroup, lastOutputRead } from "../../world/programs.ts";
import { Output } from "../output.ts";

/**
 * Maximum bytes of output. A command that writes more is stopped, because reading it would block other work.
 */
export const OUTPUT_RUNAWAY_BYTES = 256 * 1024 * 1024;
/** Maximum bytes to keep of a separate error stream, which only serves to find the cause of a failure. */
const ERRORS_KEPT_BYTES = 4 * 1024;

/** Why the process ended: it exited, exceeded a limit, or was aborted. */
export type Ending = "ended" | "timeout" | "aborted" | "output" | "memory" | "processes" | "disk";

export interface ProcessEnd {
  readonly ending: Ending;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: Output;
  /** Beginning of the error stream. Empty if the command redirects its errors to its output. */
  readonly errors: string;
}

export interface ProcessPlan {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Standard input. Absent if there is none. */
  readonly input?: string;
  /** Contents of file descriptors 3, 4, … */
  readonly data?: readonly (Buffer | string)[];
  readonly outputMaxBytes: number;
  /** Time limit in ms, from the start. If absent, `watch` measures the time. */
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
  /** Stops all processes of the program. May be called more than once. */
  kill(child: ChildProcess): void;
  /**
   * Called once the process runs. A watch may stop the process for other reasons. Returns a function that
   * ends the watch.
   */
  watch?(child: ChildProcess, stop: (why: Ending) => void): () => void;
}

/** A process may leave part of its input unread. This is not an error. */
function writeAll(stream: Writable | Readable | null | undefined, data: Buffer | string): void {
  const writable = stream as Writable;
  writable.on("error", () => undefined);
  writable.end(data);
}

/** Starts a process and waits until it exits. Rejects if the process could not be started. */
export function runProcess(plan: ProcessPlan): Promise<ProcessEnd> {
  const { input, data = [], timeoutMs } = plan;
  const child = spawn(plan.file, plan.args, {
    cwd: plan.cwd,
    env: plan.env,
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe", ...data.map(() => "pipe" as const)],
    detached: true,
    ...(timeoutMs === undefined ? {} : { timeout: Math.ceil(timeoutMs), killSignal: "SIGKILL" }),
  });
  if (child.pid !== undefined) {
    if (input !== undefined) writeAll(child.stdin, input);
    for (const [index, piece] of data.entries()) writeAll(child.stdio[3 + index], piece);
  }
  return follow(child, plan);
}

function follow(child: ChildProcess, plan: ProcessPlan): Promise<ProcessEnd> {
  const { signal: abort } = plan;
  const output = new Output(plan.outputMaxBytes);
  const errors = new Output(ERRORS_KEPT_BYTES);
  return new Promise((done, failed) => {
    let ending: Ending = "ended";
    let over = false;
    const stop = (why: Ending) => {
      // The watch may call `stop` after the process has exited.
      if (over) return;
      if (ending === "ended") ending = why;
      plan.kill(child);
    };
    const onAbort = () => stop("aborted");
    abort.addEventListener("abort", onAbort, { once: true });
    child.stdout?.on("data", (chunk: Buffer) => {
      if (ending === "output") return;
      output.add(chunk);
      if (output.totalBytes > OUTPUT_RUNAWAY_BYTES) stop("output");
    });
    child.stderr?.on("data", (chunk: Buffer) => errors.add(chunk));
    let unwatch: (() => void) | undefined;
    const release = () => {
      over = true;
      abort.removeEventListener("abort", onAbort);
      unwatch?.();
    };
    child.once("error", (error) => {
      release();
      failed(error);
    });
    child.once("exit", async (exitCode, signal) => {
      release();
      killGroup(child);
      await lastOutputRead();
      for (const stream of child.stdio) stream?.destroy();
      // Only the platform's own timeout sets `killed`: Parley never calls the child's kill method.
      if (ending === "ended" && child.killed) ending = "timeout";
      done({ ending, exitCode, signal, output, errors: errors.read().text });
    });
    if (child.pid === undefined) return;
    unwatch = plan.watch?.(child, stop);
    if (abort.aborted) onAbort();
  });
}
