// Defines the tools `read`, `write` and `edit` (file-operations.ts), `grep` and `glob` (search.ts). For a
// sandboxed session their code runs in the sandbox, through file-worker.ts. Every path of a call is then
// resolved inside the sandbox, so a hostile command that swaps links and folders at the same time reaches
// nothing outside. Without a sandbox, searches run in the worker as well, and `fetch` (web/fetch.ts) does.
// `search` (web/search.ts) always runs in the worker outside every sandbox, because its key must not get in.

import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { ToolResultOf } from "../../contract/tools.ts";
import { joinLabels } from "../../core/rules/labels/labels.ts";
import { webSource } from "../../core/rules/labels/sources.ts";
import { type Code, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { GREP_LIMIT, SEARCH_COUNT_LIMIT, SEARCH_QUERY_MAX_CHARS } from "../../core/shapes/tool.ts";
import type { Engine } from "../../engine/engine.ts";
import { runProcess } from "../../sandbox/process/process.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { killGroup } from "../../world/programs.ts";
import { countLimit, textLimit } from "../arguments.ts";
import { type Containable, sandboxOf } from "../containment.ts";
import { fetchSink, readLabel } from "../labels/sinks.ts";
import { type CallerContext, type RunContext, type Tool, tool } from "../tool.ts";
import { FILE_OPERATIONS, type FileOperation, type TakenFile, take } from "./file-operations.ts";
import type { SEARCH_OPERATIONS } from "./search.ts";

/** Time limit of a worker. */
const WORKER_MAX_MS = 60_000;
/** Time limit of a worker that searches the web. */
const SEARCH_MAX_MS = 20_000;
/** Twice the size of the largest answer (a picture in base64), so that no answer is cut. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;
const PATTERN_MAX_CHARS = 4_096;

interface Context extends Containable, Pick<CallerContext, "agent">, Pick<RunContext, "signal"> {
  readonly engine: Pick<Engine, "newId">;
}

type Operation = FileOperation | keyof typeof SEARCH_OPERATIONS | "fetch" | "search";
type OperationResult = ToolResultOf<Operation> | TakenFile;

async function operate<N extends Operation>(
  name: N,
  ctx: Context,
  args: Record<string, unknown>,
): Promise<Result<ToolResultOf<N>>> {
  const sandbox = sandboxOf(ctx);
  if (!sandbox.ok) return sandbox;
  const answer =
    sandbox.value === undefined && isDirect(name)
      ? await FILE_OPERATIONS[name](ctx, args)
      : await inWorker(sandbox.value, name, ctx, args);
  return answer as Result<ToolResultOf<N>>;
}

const isDirect = (name: Operation): name is FileOperation => Object.hasOwn(FILE_OPERATIONS, name);

const FAILURES: Partial<Record<string, Code>> = { fetch: "fetch_failed", search: "search_failed" };

async function inWorker(
  sandbox: Sandbox | undefined,
  name: Operation | "take",
  ctx: Context,
  args: Record<string, unknown>,
  timeoutMs = WORKER_MAX_MS,
): Promise<Result<OperationResult>> {
  if (ctx.signal.aborted) return fail("run_aborted", "the run was aborted before the call started");
  const { tools } = ctx.settings;
  const input = JSON.stringify({
    name,
    args,
    workspace: ctx.agent.workspace,
    id: ctx.engine.newId(),
    allowHosts: tools.fetch.allowHosts,
    // No other call gets the key: its worker may run in a sandbox.
    ...(name === "search" ? { search: tools.search } : {}),
  });
  // The worker is beside this file, both in source and in the build.
  const source = fileURLToPath(new URL("./file-worker.ts", import.meta.url));
  const file = import.meta.filename.endsWith(".ts") ? source : source.replace(/\.ts$/, ".js");
  const limits = { timeoutMs, outputMaxBytes: ANSWER_MAX_BYTES, signal: ctx.signal };
  const dir = getCompileCacheDir();
  const env = dir === undefined ? {} : { NODE_COMPILE_CACHE: dirname(dir) };
  const bare = { file: process.execPath, args: [file], cwd: "/", env, input, kill: killGroup, ...limits };
  const end = await (sandbox?.run({ kind: "script", file, input }, limits) ?? runProcess(bare).then(ok));
  if (!end.ok) return end;
  const { ending, exitCode, output, errors } = end.value;
  if (ending === "aborted") return fail("run_aborted", "the run was aborted");
  if (ending === "ended" && exitCode === 0) return JSON.parse(output.read().text) as Result<OperationResult>;
  const code = FAILURES[name] ?? "file_problem";
  if (ending === "timeout") return fail(code, `${name} was stopped after ${timeoutMs / 1_000} s`);
  const reason = ending === "ended" ? errors.trim() || `exit code ${exitCode}` : ending;
  return fail(code, `${name} was stopped${sandbox ? " in the sandbox" : ""}: ${reason}`);
}

/** Reads a whole file of at most `maxBytes`, in the sandbox if the session has one. */
export async function takeFile(ctx: Context, path: string, maxBytes: number): Promise<Result<TakenFile>> {
  const sandbox = sandboxOf(ctx);
  if (!sandbox.ok) return sandbox;
  const args = { path, maxBytes };
  if (sandbox.value === undefined) return take(ctx, args);
  return (await inWorker(sandbox.value, "take", ctx, args)) as Result<TakenFile>;
}

const fileTool = (name: FileOperation, readsFiles: boolean): Tool<Context> =>
  tool(name, { readsFiles, execute: (ctx, args) => operate(name, ctx, { ...args }) });

const searchTool = (name: keyof typeof SEARCH_OPERATIONS): Tool<Context> =>
  tool(name, {
    limits: {
      pattern: textLimit(PATTERN_MAX_CHARS),
      path: textLimit(PATTERN_MAX_CHARS),
      glob: textLimit(PATTERN_MAX_CHARS),
      limit: countLimit(GREP_LIMIT),
    },
    readsFiles: true,
    execute: (ctx, args) => operate(name, ctx, { ...args }),
  });

export const fetchTool: Tool<Context> = tool("fetch", {
  limits: { url: textLimit(PATTERN_MAX_CHARS), offset: countLimit({ fallback: 0, min: 0, max: 1e9 }) },
  sink: (ctx, { url }) => fetchSink(ctx, url),
  // The address may have led elsewhere.
  reads: (ctx, { url }, result) =>
    joinLabels(
      readLabel(ctx, "outside", webSource(url)),
      result && readLabel(ctx, "outside", webSource(result.url)),
    ),
  execute: (ctx, args) => operate("fetch", ctx, { ...args }),
});

/** Returns the tool `search`. */
export const webSearchTool = (timeoutMs = SEARCH_MAX_MS): Tool<Context> =>
  tool("search", {
    isUsable: ({ settings }) => settings.tools.search !== undefined,
    limits: { query: textLimit(SEARCH_QUERY_MAX_CHARS), count: countLimit(SEARCH_COUNT_LIMIT) },
    reads: (ctx) => readLabel(ctx, "outside", "web search"),
    execute: async (ctx, args) => {
      const answer = await inWorker(undefined, "search", ctx, { ...args }, timeoutMs);
      return answer as Result<ToolResultOf<"search">>;
    },
  });

export const fileTools: readonly Tool<Context>[] = [
  fileTool("read", true),
  fileTool("write", false),
  fileTool("edit", true),
  searchTool("grep"),
  searchTool("glob"),
];
