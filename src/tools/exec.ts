// Owns the tool exec: one shell command in the agent's workspace.
// C1: a command is a process group of its own; when the command ends, for whatever reason, the group is
//     killed.
// C2: a command gets none of the gateway's environment but what is listed here, and no input.
// C3: its memory here is bounded: head and tail of the output are kept, the middle is counted.
// The working folder is the workspace, but nothing keeps a command in it: containment is the sandbox's work.
// Without one, a command reads and changes what the gateway's user can, and a process that leaves the group
// outlives it.

import { type ChildProcess, spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { type Failure, fail, toolFailure } from "../core/errors.ts";
import type { Tool, ToolContext, ToolResult } from "./tool.ts";
import { makeFolder, openWorkspace } from "./workspace.ts";

const TIMEOUT_DEFAULT_SECONDS = 120;
const COMMAND_MAX_BYTES = 100_000;
/**
 * A command that writes more than this is stopped: reading it would keep the gateway from everything else.
 */
const OUTPUT_RUNAWAY_BYTES = 256 * 1024 * 1024;
const SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Joins errors to the output in the order of writing, then becomes the shell that runs the command. */
const OUTER_SHELL = ["--noprofile", "--norc", "-c", 'exec bash --noprofile --norc -c "$1" 2>&1', "bash"];

type Context = Pick<ToolContext, "agent" | "signal" | "settings"> & {
  readonly engine: Pick<ToolContext["engine"], "now">;
};

/** Keeps the first and the last half of `maxBytes` of what is added. */
class Output {
  readonly #halfBytes: number;
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  totalBytes = 0;

  constructor(maxBytes: number) {
    this.#halfBytes = Math.max(1, Math.floor(maxBytes / 2));
  }

  add(chunk: Buffer): void {
    this.totalBytes += chunk.length;
    const toHead = chunk.subarray(0, this.#halfBytes - this.#headBytes);
    if (toHead.length > 0) this.#head.push(Buffer.from(toHead));
    this.#headBytes += toHead.length;
    const toTail = chunk.subarray(toHead.length);
    if (toTail.length === 0) return;
    this.#tail.push(Buffer.from(toTail.subarray(-this.#halfBytes)));
    this.#tailBytes += Math.min(toTail.length, this.#halfBytes);
    if (this.#tailBytes > 4 * this.#halfBytes) this.#shrink();
  }

  #shrink(): Buffer {
    const last = Buffer.from(Buffer.concat(this.#tail).subarray(-this.#halfBytes));
    this.#tail = [last];
    this.#tailBytes = last.length;
    return last;
  }

  /** The text, with a line in the place of what was left out. Bytes that are no text become `\uFFFD`. */
  read(): { text: string; truncated: boolean } {
    const head = Buffer.concat(this.#head);
    const tail = this.#shrink();
    const leftOut = this.totalBytes - head.length - tail.length;
    if (leftOut === 0) return { text: readable(Buffer.concat([head, tail])), truncated: false };
    const first = readable(head.subarray(0, characterEnd(head)));
    const last = readable(tail.subarray(characterStart(tail)));
    return { text: `${first}\n[… ${leftOut} bytes left out …]\n${last}`, truncated: true };
  }
}

const readable = (bytes: Buffer): string => bytes.toString("utf8").replaceAll("\0", "\uFFFD");

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Skips up to three bytes of a character that the cut took the beginning of. */
function characterStart(bytes: Buffer): number {
  let at = 0;
  while (at < 3 && isContinuation(bytes[at])) at += 1;
  return at;
}

/** Leaves out a character that the cut took the end of. */
function characterEnd(bytes: Buffer): number {
  let lead = bytes.length - 1;
  while (lead > bytes.length - 4 && isContinuation(bytes[lead])) lead -= 1;
  const byte = bytes[lead] ?? 0;
  const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
  return lead + length > bytes.length ? Math.max(0, lead) : bytes.length;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // Nobody is left in the group.
  }
}

type Ending = "ended" | "timeout" | "aborted" | "runaway";

interface Ended {
  readonly ending: Ending;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Follows a started command to its end and leaves nothing of its group behind. */
function follow(child: ChildProcess, output: Output, folder: string, abort: AbortSignal): Promise<Ended> {
  return new Promise((done, failed) => {
    let ending: Ending = "ended";
    const stop = (why: Ending) => {
      if (ending === "ended") ending = why;
      killGroup(child);
    };
    const onAbort = () => stop("aborted");
    abort.addEventListener("abort", onAbort, { once: true });
    if (abort.aborted) onAbort();
    child.stdout?.on("data", (chunk: Buffer) => {
      if (ending === "runaway") return;
      output.add(chunk);
      if (output.totalBytes > OUTPUT_RUNAWAY_BYTES) stop("runaway");
    });
    child.once("error", (error) => {
      abort.removeEventListener("abort", onAbort);
      failed(error);
    });
    child.once("exit", async (exitCode, signal) => {
      abort.removeEventListener("abort", onAbort);
      killGroup(child);
      // What the command wrote is in the pipe by now, but a process that left the group may hold the pipe
      // open for ever, so its end can't be waited for. Two answers of the file system are two turns of the
      // event loop, and the first whole turn has read all that was there.
      await stat(folder).catch(() => undefined);
      await stat(folder).catch(() => undefined);
      child.stdout?.destroy();
      // Only the platform's own timeout uses the child's kill method; we always kill the group.
      if (ending === "ended" && child.killed) ending = "timeout";
      done({ ending, exitCode, signal });
    });
  });
}

function checkCommand(command: string, seconds: unknown): Failure | undefined {
  if (command.trim() === "") return fail("invalid_argument", "command must not be empty");
  if (command.includes("\0")) return fail("invalid_argument", "command has a NUL byte in it");
  const bytes = Buffer.byteLength(command);
  if (bytes > COMMAND_MAX_BYTES) {
    const hint = "Write it to a file with write, then run the file.";
    return fail("too_large", `command is ${bytes} bytes; the limit is ${COMMAND_MAX_BYTES}`, { hint });
  }
  if (seconds === undefined || (typeof seconds === "number" && Number.isFinite(seconds) && seconds > 0))
    return;
  return fail("invalid_argument", `timeoutSeconds must be a number above 0, got ${String(seconds)}`);
}

async function exec(ctx: Context, args: Record<string, unknown>): Promise<ToolResult> {
  const command = String(args.command);
  const problem = checkCommand(command, args.timeoutSeconds);
  if (problem !== undefined) return toolFailure(problem);
  if (ctx.signal.aborted)
    return toolFailure(fail("run_aborted", "the run was aborted before the command started"));
  const limits = ctx.settings.tools.exec;
  const asked = typeof args.timeoutSeconds === "number" ? args.timeoutSeconds : TIMEOUT_DEFAULT_SECONDS;
  const seconds = Math.min(asked, limits.timeoutSeconds);
  const folder = await openWorkspace(ctx.agent.workspace);
  if (!folder.ok) return toolFailure(folder);
  const temporary = await makeFolder(folder.value, ".parley/tmp");
  if (!temporary.ok) return toolFailure(temporary);
  const output = new Output(limits.maxOutputBytes);
  const startedAt = ctx.engine.now();
  try {
    const child = spawn("bash", [...OUTER_SHELL, command], {
      cwd: folder.value,
      env: {
        PATH: limits.searchPath ?? SEARCH_PATH,
        HOME: folder.value,
        LANG: "C.UTF-8",
        TERM: "dumb",
        TMPDIR: temporary.value,
      },
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
      timeout: Math.ceil(seconds * 1000),
      killSignal: "SIGKILL",
    });
    const ended = await follow(child, output, folder.value, ctx.signal);
    return report(ended, output, seconds, ctx.engine.now() - startedAt);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return toolFailure(fail("exec_failed", `the command could not be started: ${reason}`));
  }
}

function report(ended: Ended, output: Output, seconds: number, durationMs: number): ToolResult {
  const { text, truncated } = output.read();
  const shown = { output: text, outputBytes: output.totalBytes, truncated, durationMs };
  switch (ended.ending) {
    case "ended": {
      const { exitCode, signal } = ended;
      return { status: "ok", exitCode, ...(signal === null ? {} : { signal }), ...shown };
    }
    case "timeout": {
      const error = `the command was killed after ${seconds} s, its whole process group with it`;
      const hint = "Give a larger timeoutSeconds, or split the work.";
      return toolFailure(fail("exec_timeout", error, { hint, details: shown }));
    }
    case "aborted":
      return toolFailure(
        fail("run_aborted", "the run was aborted and the command killed", { details: shown }),
      );
    case "runaway": {
      const error = `the command was killed: it wrote more than ${OUTPUT_RUNAWAY_BYTES} bytes`;
      return toolFailure(fail("exec_failed", error, { hint: "Send its output to a file.", details: shown }));
    }
  }
}

/**
 * Runs a shell command in the workspace. Not contained without a sandbox: only the working folder is the
 * workspace,
 * and what the gateway's user may do, the command may do.
 */
export const execTool: Tool = {
  spec: {
    name: "exec",
    description:
      "Run a bash command in your workspace and get its output (stdout and stderr together) and exit code. " +
      "It gets no input and a minimal environment; everything that it started ends with it. " +
      "Long output is cut in the middle.",
    parameters: {
      type: "object",
      properties: {
        command: { type: "string", description: "What bash -c runs, in the workspace." },
        timeoutSeconds: {
          type: "number",
          description:
            `Kill it after so many seconds. Default ${TIMEOUT_DEFAULT_SECONDS}; ` +
            "the gateway has a maximum.",
        },
      },
      required: ["command"],
    },
    parallel: false,
    idempotent: false,
  },
  execute: exec,
};
