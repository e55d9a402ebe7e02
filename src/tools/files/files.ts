// Defines the tools `read`, `write` and `edit`. file-operations.ts implements them; for a sandboxed session
// the same code runs in the sandbox, through file-worker.ts. Every path of a call is then resolved inside the
// sandbox, so a hostile command that swaps links and folders at the same time reaches nothing outside.

import { fileURLToPath } from "node:url";
import { fail, type Result } from "../../core/shapes/errors.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { type Containable, sandboxOf } from "../containment.ts";
import { type CallerContext, type RunContext, type Tool, tool } from "../tool.ts";
import { FILE_OPERATIONS, type FileOperation, type FileResult } from "./file-operations.ts";

const CONTAINED_MAX_MS = 60_000;
/** Twice the size of the largest answer (a picture in base64), so that no answer is cut. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

interface Context extends Containable, Pick<CallerContext, "agent">, Pick<RunContext, "signal"> {
  readonly engine: Pick<Engine, "newId">;
}

async function operate(
  name: FileOperation,
  ctx: Context,
  args: Record<string, unknown>,
): Promise<Result<FileResult>> {
  const sandbox = sandboxOf(ctx);
  if (!sandbox.ok) return sandbox;
  if (sandbox.value === undefined) return FILE_OPERATIONS[name](ctx, args);
  return contained(sandbox.value, name, ctx, args);
}

/** Returns the path of the worker, which is beside this file, both in source and in the build. */
function workerFile(): string {
  const source = fileURLToPath(new URL("./file-worker.ts", import.meta.url));
  return import.meta.filename.endsWith(".ts") ? source : source.replace(/\.ts$/, ".js");
}

async function contained(
  sandbox: Sandbox,
  name: FileOperation,
  ctx: Context,
  args: Record<string, unknown>,
): Promise<Result<FileResult>> {
  if (ctx.signal.aborted) return fail("run_aborted", "the run was aborted before the call started");
  const request = { name, args, workspace: ctx.agent.workspace, id: ctx.engine.newId() };
  const end = await sandbox.run(
    { kind: "script", file: workerFile(), input: JSON.stringify(request) },
    { timeoutMs: CONTAINED_MAX_MS, outputMaxBytes: ANSWER_MAX_BYTES, signal: ctx.signal },
  );
  if (!end.ok) return end;
  const { ending, exitCode, output, errors } = end.value;
  if (ending === "aborted") return fail("run_aborted", "the run was aborted");
  if (ending === "ended" && exitCode === 0) return JSON.parse(output.read().text) as Result<FileResult>;
  const reason = ending === "ended" ? errors.trim() || `exit code ${exitCode}` : ending;
  return fail("file_problem", `${name} was stopped in the sandbox: ${reason}`);
}

function fileTool(name: FileOperation): Tool<Context> {
  return tool(name, { execute: (ctx, args) => operate(name, ctx, { ...args }) });
}

export const fileTools: readonly Tool<Context>[] = [fileTool("read"), fileTool("write"), fileTool("edit")];
