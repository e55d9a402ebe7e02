// Implements the tool `exec`, which runs one shell command in the agent's workspace.
// - A command is a separate process group, which is killed when the command ends for any reason.
// - A command gets none of the gateway's environment, and no input (bare-environment.ts, system-view.ts).
// - Memory for the output is limited: its beginning and its end are kept, the middle is only counted.
// - A command that needs an approval waits for it (approval.ts).
// - In a sandboxed session the command runs in the sandbox or not at all.
// The working folder is the workspace, but only a sandbox keeps a command inside it. Without one, a command
// has all rights of the gateway's user, and a process that leaves the group survives.

import { EXEC_SECONDS } from "../contract/tools/work.ts";
import type { ArgumentsOf, ToolResultOf } from "../contract/tools.ts";
import { optional } from "../core/optional.ts";
import { outsideCommand } from "../core/rules/labels/sources.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import type { ToolCallRequest } from "../core/shapes/tool.ts";
import { OUTPUT_RUNAWAY_BYTES, type ProcessEnd, runProcess } from "../sandbox/process/process.ts";
import type { ContainedEnd, Sandbox } from "../sandbox/sandbox.ts";
import { killGroup } from "../world/programs.ts";
import { type ApprovalContext, approve, type Renewable } from "./approval.ts";
import { bareEnvironment } from "./bare-environment.ts";
import { type Containable, sandboxOf } from "./containment.ts";
import { openWorkspace } from "./files/workspace.ts";
import { containsCommands, execSink, readLabel } from "./labels/sinks.ts";
import { type Tool, tool } from "./tool.ts";

const COMMAND_MAX_BYTES = 100_000;
/**
 * Redirects stderr to stdout, so that the output keeps its order, and then becomes the shell that runs the
 * command.
 */
const OUTER_SHELL = ["--noprofile", "--norc", "-c", 'exec bash --noprofile --norc -c "$1" 2>&1', "bash"];

interface Context extends Containable, ApprovalContext, Renewable<Context> {}

function checkCommand(command: string): Failure | undefined {
  if (command.trim() === "") return fail("invalid_argument", "command must not be empty");
  if (command.includes("\0")) return fail("invalid_argument", "command has a NUL byte in it: remove it");
  const bytes = Buffer.byteLength(command);
  if (bytes > COMMAND_MAX_BYTES) {
    const hint = "Write it to a file with write, then run the file.";
    return fail("too_large", `command is ${bytes} bytes; the limit is ${COMMAND_MAX_BYTES}`, { hint });
  }
  return undefined;
}

async function exec(
  asking: Context,
  { command, timeoutSeconds: asked = EXEC_SECONDS }: ArgumentsOf<"exec">,
  call: ToolCallRequest,
): Promise<Result<ExecResult>> {
  const problem = checkCommand(command);
  if (problem !== undefined) return problem;
  if (asking.signal.aborted) return fail("run_aborted", "the run was aborted before the command started");
  const containable = sandboxOf(asking);
  if (!containable.ok) return containable;
  const approved = await approve(asking, command, call);
  if (!approved.ok) return approved;
  const { ctx, line } = approved.value;
  const sandbox = sandboxOf(ctx);
  if (!sandbox.ok) return sandbox;
  const limits = ctx.settings.tools.exec;
  const seconds = Math.min(asked, limits.timeoutSeconds);
  const startedAt = ctx.engine.now();
  const timeoutMs = seconds * 1000;
  const end = await (sandbox.value === undefined
    ? runBare(ctx, line, timeoutMs)
    : runContained(sandbox.value, ctx, line, timeoutMs));
  if (!end.ok) return end;
  return report(ctx, end.value, seconds, ctx.engine.now() - startedAt);
}

function runContained(
  sandbox: Sandbox,
  ctx: Context,
  command: string,
  timeoutMs: number,
): Promise<Result<ContainedEnd>> {
  const { maxOutputBytes: outputMaxBytes, searchPath } = ctx.settings.tools.exec;
  const path = optional({ searchPath });
  const limits = { timeoutMs, outputMaxBytes, signal: ctx.signal, ...path };
  return sandbox.run({ kind: "shell", command }, limits);
}

async function runBare(ctx: Context, command: string, timeoutMs: number): Promise<Result<ProcessEnd>> {
  const folder = await openWorkspace(ctx.agent.workspace);
  if (!folder.ok) return folder;
  const env = await bareEnvironment(ctx);
  if (!env.ok) return env;
  const limits = ctx.settings.tools.exec;
  try {
    const end = await runProcess({
      file: "bash",
      args: [...OUTER_SHELL, command],
      cwd: folder.value,
      env: env.value,
      outputMaxBytes: limits.maxOutputBytes,
      timeoutMs,
      signal: ctx.signal,
      kill: killGroup,
    });
    return ok(end);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return fail("exec_failed", `the command could not be started: ${reason}`);
  }
}

type ExecResult = ToolResultOf<"exec">;

function report(
  ctx: Context,
  end: ProcessEnd | ContainedEnd,
  seconds: number,
  durationMs: number,
): Result<ExecResult> {
  const { output } = end;
  const { text, truncated } = output.read();
  const full = "full" in end && end.full ? { note: fullNote(ctx) } : {};
  const details = { output: text, outputBytes: output.totalBytes, truncated, durationMs, ...full };
  const failKilled = (error: string, hint: string): Failure =>
    fail("exec_failed", `the command was killed: ${error}`, { hint, details });

  switch (end.ending) {
    case "ended": {
      const { exitCode, signal } = end;
      return ok({ status: "ok", exitCode, ...(signal === null ? {} : { signal }), ...details });
    }
    case "timeout": {
      // Without a sandbox, a process that has left the group survives.
      const all = "full" in end ? "everything that it started" : "its whole process group";
      const error = `the command was killed after ${seconds} s, ${all} with it`;
      const hint = "Give a larger timeoutSeconds, or split the work.";
      return fail("exec_timeout", error, { hint, details });
    }
    case "aborted":
      return fail("run_aborted", "the run was aborted and the command killed", { details });
    case "output":
      return failKilled(`it wrote more than ${OUTPUT_RUNAWAY_BYTES} bytes`, "Send its output to a file.");
    case "memory":
      return failKilled(
        `it used more than ${ctx.agent.sandbox.memoryMb} MB of memory (sandbox.memoryMb)`,
        "Work in smaller pieces.",
      );
    case "processes":
      return failKilled(
        `it had more than ${ctx.agent.sandbox.processesMax} processes (sandbox.processesMax)`,
        "Run fewer things at once.",
      );
    case "disk":
      return failKilled(
        `it filled the workspace to more than ${ctx.agent.sandbox.diskMb} MB (sandbox.diskMb)`,
        "Remove what is not needed; until then no file can grow.",
      );
  }
}

const fullNote = ({ agent }: Context): string =>
  `The workspace holds more than ${agent.sandbox.diskMb} MB (sandbox.diskMb): remove files; none can grow.`;

/**
 * Runs a shell command in the workspace. Without a sandbox the command has all rights of the gateway's user.
 */
export const execTool: Tool<Context> = tool("exec", {
  limits: {
    timeoutSeconds: (value: unknown, name: string) =>
      typeof value !== "number"
        ? ok(undefined)
        : value > 0
          ? ok(value)
          : fail("invalid_argument", `${name} must be a number above 0, got ${value}`),
  },
  sink: (ctx, { command }) => execSink(ctx, command),
  readsFiles: true,
  reads: (ctx, { command }) =>
    containsCommands(ctx) ? undefined : readLabel(ctx, "outside", outsideCommand(command)),
  execute: exec,
});
