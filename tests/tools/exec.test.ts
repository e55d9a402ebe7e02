// The environment of a command, its result, and its clean-up.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readArguments } from "../../src/tools/arguments.ts";
import { execTool } from "../../src/tools/exec.ts";
import { type ToolResult, toolResult } from "../../src/tools/tool.ts";
import { until } from "../kit/until.ts";
import { agentSettings, MAIN_CHAIN, settingsWith } from "./app.ts";

let folder: string;
let workspace: string;
/** The gateway's state folder. */
let state: string;
const started: number[] = [];

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "parley-exec-")));
  workspace = join(folder, "workspace");
  state = join(folder, "state");
  mkdirSync(workspace);
});
afterEach(() => {
  for (const pid of started.splice(0)) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

interface Options {
  readonly signal?: AbortSignal;
  readonly timeoutSeconds?: number;
  readonly maxOutputBytes?: number;
}

async function run(args: Record<string, unknown>, options: Options = {}): Promise<ToolResult> {
  const { timeoutSeconds = 60, maxOutputBytes = 2_000 } = options;
  const { tools, store, ...settings } = settingsWith();
  const limits = { ...tools.exec, timeoutSeconds, maxOutputBytes };
  const ctx = {
    agent: agentSettings("main", { workspace }),
    chain: MAIN_CHAIN,
    settings: { ...settings, store: { ...store, dir: state }, tools: { ...tools, exec: limits } },
    signal: options.signal ?? new AbortController().signal,
    engine: { now: () => Date.now(), commit: (): Promise<never> => Promise.reject(new Error("no store")) },
  };
  const call = { callId: "c", attempt: 1, name: "exec", arguments: args };
  return toolResult(await execTool.execute(ctx, args, call));
}

/** Returns true if a process runs. A zombie has a process id but does not run. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function pidIn(file: string): number {
  const pid = Number(readFileSync(join(workspace, file), "utf8"));
  started.push(pid);
  return pid;
}

test("the result contains the output and the errors in the order of writing, and the exit code", async () => {
  const result = await run({ command: "echo one; echo two >&2; printf 'drei ✓'; exit 3" });
  expect(result).toMatchObject({ status: "ok", exitCode: 3, output: "one\ntwo\ndrei ✓", truncated: false });
  expect(result).not.toHaveProperty("signal");
  expect(await run({ command: "kill -SEGV $$" })).toMatchObject({
    status: "ok",
    exitCode: null,
    signal: "SIGSEGV",
  });
});

test("I14: a command cannot see the gateway's environment, starts in the workspace and has no input", async () => {
  process.env.PARLEY_TEST_SECRET = "s3cret";
  try {
    const seen = await run({ command: "env | sort; pwd; cat; touch $TMPDIR/x" }, { maxOutputBytes: 10_000 });
    const names = String(seen.output).match(/^[A-Z]+(?==)|^_(?==)/gm);
    expect(names).toEqual([
      "HOME",
      "LANG",
      "PATH",
      "PWD",
      "PYTHONNOUSERSITE",
      "SHLVL",
      "TERM",
      "TMPDIR",
      "_",
    ]);
    expect(seen.output).not.toContain("s3cret");
    expect(String(seen.output).endsWith(`\n${workspace}\n`)).toBe(true);
    expect(seen.exitCode).toBe(0);
  } finally {
    delete process.env.PARLEY_TEST_SECRET;
  }
});

test("long output keeps its beginning and its end, and the result says how much is missing between them", async () => {
  const result = await run({ command: "echo BEGIN; seq 1 200000; echo END" });
  expect(result.truncated).toBe(true);
  expect(result.output).toMatch(/^BEGIN\n1\n2\n[\s\S]*\n\[… \d+ bytes left out …\]\n[\s\S]*\n200000\nEND\n$/);
  expect(Buffer.byteLength(String(result.output))).toBeLessThan(2_100);
  const accents = await run({ command: "printf 'x'; printf 'é%.0s' $(seq 1 9999)" });
  expect(accents.output).not.toContain("\uFFFD");
  expect(await run({ command: "printf 'a\\0b\\xff'" })).toMatchObject({ output: "a\uFFFDb\uFFFD" });
});

test("output exactly at the limit is not cut", async () => {
  const command = "head -c 2000 /dev/zero | tr '\\0' x";
  expect(await run({ command })).toMatchObject({ truncated: false, output: "x".repeat(2_000) });
});

test("if a command exceeds its time limit, it is killed with all processes that it started", async () => {
  const command = "sleep 300 & echo $! > child; (sleep 300; true) & echo before; wait";
  const result = await run({ command, timeoutSeconds: 0.5 });
  expect(result).toMatchObject({ status: "error", code: "exec_timeout", output: "before\n" });
  expect(result.error).toContain("0.5 s");
  const pid = pidIn("child");
  await until(() => !isAlive(pid));
});

test("the gateway's time limit replaces that of the call if it is shorter", async () => {
  const result = await run({ command: "sleep 300", timeoutSeconds: 9_999 }, { timeoutSeconds: 0.2 });
  expect(result).toMatchObject({ code: "exec_timeout" });
});

test("a background process ends with its command, and does not delay the answer", async () => {
  const result = await run({ command: "sleep 300 & echo $! > child; echo done" });
  expect(result).toMatchObject({ status: "ok", exitCode: 0, output: "done\n" });
  const pid = pidIn("child");
  await until(() => !isAlive(pid));
});

test("a process that leaves the process group and keeps the output open does not delay the answer", async () => {
  const command =
    "setsid sleep 300 & echo $! > child; head -c 300000 /dev/zero | tr '\\0' y; echo; echo done";
  const result = await run({ command });
  pidIn("child");
  expect(result).toMatchObject({ status: "ok", exitCode: 0, outputBytes: 300_006 });
  expect(String(result.output).endsWith("\ndone\n")).toBe(true);
});

test("an abort kills the command and its processes, and the result says so", async () => {
  const abort = new AbortController();
  const running = run(
    { command: "sleep 300 & echo $! > child; echo $$ > ready; wait" },
    { signal: abort.signal },
  );
  await until(() => existsSync(join(workspace, "ready")));
  await until(() => readFileSync(join(workspace, "ready"), "utf8").endsWith("\n"));
  abort.abort();
  expect(await running).toMatchObject({ status: "error", code: "run_aborted" });
  const pid = pidIn("child");
  await until(() => !isAlive(pid));
  expect(await run({ command: "touch late" }, { signal: abort.signal })).toMatchObject({
    code: "run_aborted",
  });
  expect(existsSync(join(workspace, "late"))).toBe(false);
});

test.each([0, -1, Number.NaN, "soon"])("timeoutSeconds %s is refused", async (timeoutSeconds) => {
  const { spec, limits } = execTool;
  const read = await readArguments(spec.parameters, { command: "true", timeoutSeconds }, limits);
  expect(read).toMatchObject({ ok: false, code: "invalid_argument" });
});

test("a command that never stops writing is stopped", async () => {
  const result = await run({ command: "yes" });
  expect(result).toMatchObject({ code: "exec_failed" });
  expect(result.error).toContain("wrote more than 268435456 bytes");
});

test.each([
  [{ command: "" }, "invalid_argument"],
  [{ command: "  \n" }, "invalid_argument"],
  [{ command: "echo \0" }, "invalid_argument"],
  [{ command: `echo ${"x".repeat(100_000)}` }, "too_large"],
])("a wrong command is refused before anything runs (%#)", async (args, code) => {
  expect(await run(args)).toMatchObject({ status: "error", code });
});
