// Owns one started process, from its start to its end: what it is given, what is kept of what it writes, and
// why it ended. Bare commands and both sandboxes are followed here; only how to kill them differs.
// P1: it gets exactly the environment, the input and the open files that are named, nothing of the gateway's.
// P2: the first reason to stop it is the one that is told.
// P3: its output is bounded: what is kept, and how much it may write before it is stopped.

import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { killGroup, lastWordsRead } from "../world/programs.ts";
import { Output } from "./output.ts";

/**
 * A command that writes more than this is stopped: reading it would keep the gateway from everything else.
 */
export const OUTPUT_RUNAWAY_BYTES = 256 * 1024 * 1024;
/** What is kept of an error stream that is kept apart: only people who look for a reason read it. */
const ERRORS_KEPT_BYTES = 4 * 1024;

/** Why it ended: by itself, or which limit or person stopped it. */
export type Ending = "ended" | "timeout" | "aborted" | "output" | "memory" | "processes" | "disk";

export interface ProcessEnd {
  readonly ending: Ending;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: Output;
  /** The beginning of the error stream; empty where the command joins it to its output. */
  readonly errors: string;
}

export interface ProcessPlan {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Standard input. Left out: none. */
  readonly input?: string;
  /** What it reads from file descriptors 3, 4, … */
  readonly data?: readonly (Buffer | string)[];
  readonly outputMaxBytes: number;
  /** Milliseconds from the start. Left out: `watch` keeps the time. */
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
  /** Stops everything that belongs to it. May be called more than once. */
  kill(child: ChildProcess): void;
  /** Called once it runs; may stop it for a reason of its own. Returns what ends the watching. */
  watch?(child: ChildProcess, stop: (why: Ending) => void): () => void;
}

/** Somebody who stops reading what we write is no failure of ours. */
function writeAll(stream: Writable | Readable | null | undefined, data: Buffer | string): void {
  const writable = stream as Writable;
  writable.on("error", () => undefined);
  writable.end(data);
}

/** Starts a process and follows it to its end. Rejects when it could not be started. */
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
      // A look that took long may come to its end after the process.
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
      await lastWordsRead();
      for (const stream of child.stdio) stream?.destroy();
      // Only the platform's own timeout uses the child's kill method; we never do.
      if (ending === "ended" && child.killed) ending = "timeout";
      done({ ending, exitCode, signal, output, errors: errors.read().text });
    });
    if (child.pid === undefined) return;
    unwatch = plan.watch?.(child, stop);
    if (abort.aborted) onAbort();
  });
}
