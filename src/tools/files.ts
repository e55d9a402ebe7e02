// Owns the tools read, write and edit. What they do is in file-operations.ts; for a sandboxed session the
// same code runs contained, by way of file-worker.ts.
// F4: with a sandbox, no path of a call is ever looked at outside it: what a hostile command does to links
//     and folders meanwhile can mislead nobody but itself.

import { fileURLToPath } from "node:url";
import { fail, toolFailure } from "../core/errors.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { type Containable, sandboxOf } from "./containment.ts";
import {
  FILE_OPERATIONS,
  type FileOperation,
  READ_LINES_DEFAULT,
  READ_TEXT_MAX_BYTES,
} from "./file-operations.ts";
import type { Tool, ToolContext, ToolResult } from "./tool.ts";

const CONTAINED_MAX_MS = 60_000;
/** Two of the largest answers, a picture in base64: none is ever cut. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

type Context = Pick<ToolContext, "agent" | "signal"> &
  Containable & {
    readonly engine: Pick<ToolContext["engine"], "newId">;
  };

async function operate(
  name: FileOperation,
  ctx: Context,
  args: Record<string, unknown>,
): Promise<ToolResult> {
  const sandbox = sandboxOf(ctx);
  if (!sandbox.ok) return toolFailure(sandbox);
  if (sandbox.value === undefined) return FILE_OPERATIONS[name](ctx, args);
  return contained(sandbox.value, name, ctx, args);
}

/** The worker's file: beside this one, built or not. */
function workerFile(): string {
  const source = fileURLToPath(new URL("./file-worker.ts", import.meta.url));
  return import.meta.filename.endsWith(".ts") ? source : source.replace(/\.ts$/, ".js");
}

async function contained(
  sandbox: Sandbox,
  name: FileOperation,
  ctx: Context,
  args: Record<string, unknown>,
): Promise<ToolResult> {
  if (ctx.signal.aborted)
    return toolFailure(fail("run_aborted", "the run was aborted before the call started"));
  const request = { name, args, workspace: ctx.agent.workspace, id: ctx.engine.newId() };
  const end = await sandbox.run(
    { kind: "script", file: workerFile(), input: JSON.stringify(request) },
    { timeoutMs: CONTAINED_MAX_MS, outputMaxBytes: ANSWER_MAX_BYTES, signal: ctx.signal },
  );
  if (!end.ok) return toolFailure(end);
  const { ending, exitCode, output, errors } = end.value;
  if (ending === "aborted") return toolFailure(fail("run_aborted", "the run was aborted"));
  if (ending === "ended" && exitCode === 0) return JSON.parse(output.read().text) as ToolResult;
  const reason = ending === "ended" ? errors.trim() || `it ended with ${exitCode}` : ending;
  return toolFailure(fail("file_problem", `${name} was stopped in the sandbox: ${reason}`));
}

const text = (description: string) => ({ type: "string", description });
const number = (description: string) => ({ type: "number", description });

/** read, write, edit: a workspace's files. */
export const fileTools: readonly Tool[] = [
  {
    spec: {
      name: "read",
      description:
        "Read a text file of your workspace, by lines, or look at a small picture (PNG, JPEG, GIF, WebP). " +
        `Gives at most ${READ_LINES_DEFAULT} lines and ${READ_TEXT_MAX_BYTES / 1024} KiB; says what it cut.`,
      parameters: {
        type: "object",
        properties: {
          path: text("Path of the file, relative to the workspace."),
          offset: number("First line, from 1. Default 1."),
          limit: number(`How many lines. Default and maximum ${READ_LINES_DEFAULT}.`),
        },
        required: ["path"],
      },
      parallel: true,
      idempotent: true,
    },
    execute: (ctx, args) => operate("read", ctx, args),
  },
  {
    spec: {
      name: "write",
      description:
        "Write a whole file of your workspace, replacing what it held. Missing folders are made. " +
        "To change a part, use edit.",
      parameters: {
        type: "object",
        properties: {
          path: text("Path of the file, relative to the workspace."),
          content: text("The whole new text."),
        },
        required: ["path", "content"],
      },
      parallel: false,
      idempotent: true,
    },
    execute: (ctx, args) => operate("write", ctx, args),
  },
  {
    spec: {
      name: "edit",
      description:
        "Replace one piece of text in a file of your workspace. The old text must stand there exactly once.",
      parameters: {
        type: "object",
        properties: {
          path: text("Path of the file, relative to the workspace."),
          oldText: text("The text to replace, exactly as it stands in the file."),
          newText: text("What comes in its place; empty removes it."),
        },
        required: ["path", "oldText", "newText"],
      },
      parallel: false,
      idempotent: false,
    },
    execute: (ctx, args) => operate("edit", ctx, args),
  },
];
