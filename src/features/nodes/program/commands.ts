// Implements the commands that this machine offers as a node: exec and notify.
// NX1: a program runs only if --allow-exec permits it; no caller can change that list. The program runs
//      without a shell, in one folder or below it, with a minimal environment, and with limits on time,
//      output and concurrency.
// Text shown on the terminal is escaped, so that it cannot move the cursor or hide text.

import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { showOnDesktop } from "../../../cli/desktop.ts";
import type { CliParts } from "../../../cli/parts.ts";
import { fieldsOf, isObject } from "../../../core/json.ts";
import { head, quoted } from "../../../core/text/cut.ts";
import { safeText } from "../../../core/text/safe-text.ts";
import { isInside } from "../../../world/folders.ts";
import { minimalEnvironment } from "../../../world/programs.ts";
import { execRefusal } from "../exec-patterns.ts";

const OUTPUT_MAX_BYTES = 64 * 1024;
const ARGUMENTS_MAX = 256;
const ARGUMENTS_MAX_CHARS = 128 * 1024;
const RUNNING_MAX = 8;
/** Part of the caller's timeout that is reserved: in it, the node reports that the program was stopped. */
const REPORT_MS = 1_000;
const TITLE_MAX_CHARS = 200;
const BODY_MAX_CHARS = 2_000;

export type Outcome =
  | { readonly ok: true; readonly payload: unknown }
  | { readonly ok: false; readonly error: { readonly code: string; readonly message: string } };

export interface Wanted {
  readonly params: unknown;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Machine {
  readonly parts: Pick<CliParts, "env" | "home" | "runProgram" | "world">;
  /** Patterns of the programs that callers may run. */
  readonly allowExec: readonly string[];
  /** The folder in which programs run; a caller may choose a folder below it. */
  readonly cwd: string;
  readonly platform: string;
  /** Shows a line in the terminal of `parley node`. */
  show(text: string): void;
}

function refuse(code: string, message: string): Outcome {
  return { ok: false, error: { code, message } };
}

interface ExecParams {
  readonly argv: readonly string[];
  readonly cwd: string | undefined;
  readonly timeoutMs: number | undefined;
}

function readExec(params: unknown): ExecParams | string {
  if (!isObject(params)) return "exec needs {command: [program, argument, …], cwd?, timeoutMs?}";
  const { command, cwd, timeoutMs, ...others } = params;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `exec has no ${quoted(unknown, 60)}; use command, cwd and timeoutMs`;
  const isList = Array.isArray(command) && command.every((word) => typeof word === "string");
  if (!isList || command.length === 0)
    return "command must be a list of strings: the program and its arguments";
  const chars = command.join(" ").length;
  if (command.length > ARGUMENTS_MAX || chars > ARGUMENTS_MAX_CHARS) {
    return `command must have at most ${ARGUMENTS_MAX} words and ${ARGUMENTS_MAX_CHARS} characters`;
  }
  if (command.some((word: string) => word.includes("\0"))) return "command must not contain a NUL character";
  if (cwd !== undefined && (typeof cwd !== "string" || cwd.includes("\0"))) return "cwd must be a path";
  const isTime = typeof timeoutMs === "number" && Number.isFinite(timeoutMs) && timeoutMs > 0;
  if (timeoutMs !== undefined && !isTime) return "timeoutMs must be a number above 0";
  return { argv: command as string[], cwd, timeoutMs: isTime ? timeoutMs : undefined };
}

/** Returns the real path of `wanted` if that folder is `base` or below it, else undefined. */
async function folderOf(base: string, wanted: string | undefined): Promise<string | undefined> {
  try {
    const top = await realpath(base);
    const folder = await realpath(resolve(top, wanted ?? "."));
    return isInside(top, folder) ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the commands that the machine offers. Their promises never reject. */
export function nodeCommands(
  machine: Machine,
): Readonly<Record<string, (wanted: Wanted) => Promise<Outcome>>> {
  let running = 0;
  const exec = async (wanted: Wanted): Promise<Outcome> => {
    const read = readExec(wanted.params);
    if (typeof read === "string") return refuse("INVALID_REQUEST", read);
    const refused = execRefusal(machine.allowExec, read.argv);
    if (refused !== undefined) return refuse("NOT_ALLOWED", refused);
    const cwd = await folderOf(machine.cwd, read.cwd);
    if (cwd === undefined)
      return refuse("NOT_ALLOWED", "cwd must be an existing folder below the node's --cwd folder");
    if (running >= RUNNING_MAX)
      return refuse("BUSY", `${RUNNING_MAX} programs are running already; try again when one has finished`);
    running++;
    try {
      return await runOne(machine, read, cwd, wanted);
    } finally {
      running--;
    }
  };
  const notify = async (wanted: Wanted): Promise<Outcome> => {
    const params = fieldsOf(wanted.params);
    const body = textOf(params.body, BODY_MAX_CHARS);
    const title = textOf(params.title, TITLE_MAX_CHARS).replaceAll("\n", " ") || "Parley";
    if (body === "") return refuse("INVALID_REQUEST", "notify needs {title?, body}: body is a string");
    const { parts, platform, cwd } = machine;
    const isOnDesktop = await showOnDesktop({ parts, platform, cwd, title, body }, wanted.signal);
    if (!isOnDesktop) machine.show(`${title}: ${body}`);
    return { ok: true, payload: { shown: isOnDesktop ? "desktop" : "terminal" } };
  };
  return machine.allowExec.length === 0 ? { notify } : { exec, notify };
}

async function runOne(machine: Machine, read: ExecParams, cwd: string, wanted: Wanted): Promise<Outcome> {
  const { parts } = machine;
  const startedAt = parts.world.clock.monotonic();
  const most = Math.max(wanted.timeoutMs - REPORT_MS, wanted.timeoutMs * 0.8);
  const timeoutMs = Math.min(read.timeoutMs ?? most, most);
  try {
    const end = await parts.runProgram({
      argv: read.argv,
      cwd,
      env: minimalEnvironment(machine.parts),
      outputMaxBytes: OUTPUT_MAX_BYTES,
      timeoutMs,
      signal: wanted.signal,
    });
    const { exitCode, signal, stdout, stdoutBytes, truncated, stderr, ending } = end;
    const durationMs = Math.round(parts.world.clock.monotonic() - startedAt);
    const payload = {
      exitCode,
      stdout,
      stdoutBytes,
      truncated,
      stderr,
      durationMs,
      timedOut: ending === "timeout",
      ...(signal === null ? {} : { signal }),
      ...(ending === "ended" ? {} : { ended: ending }),
    };
    return { ok: true, payload };
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    const program = quoted(read.argv[0] ?? "", 200);
    return refuse("EXEC_FAILED", `${program} could not be started${code === "" ? "" : ` (${code})`}`);
  }
}

function textOf(value: unknown, charsMax: number): string {
  return typeof value === "string" ? safeText(head(value, charsMax)).trim() : "";
}
