// A sandbox with its own workspace and tools, and functions that inspect it from outside.

import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { optional } from "../../src/core/optional.ts";
import type { Result } from "../../src/core/shapes/errors.ts";
import { createSandboxFinder, type SandboxFinder } from "../../src/sandbox/find.ts";
import type { ContainedEnd, RunLimits, Sandbox, SandboxNeeds } from "../../src/sandbox/sandbox.ts";
import type { ToolContext } from "../../src/tools/catalog.ts";
import { execTool } from "../../src/tools/exec.ts";
import { fileTools, takeFile } from "../../src/tools/files/files.ts";
import { type ToolResult, toolResult } from "../../src/tools/tool.ts";
import { realWorld } from "../../src/world.ts";
import { PATIENCE_MS } from "../kit/until.ts";

export const NEEDS: SandboxNeeds = {
  backend: "bubblewrap",
  network: false,
  memoryMb: 512,
  processesMax: 64,
  diskMb: 64,
  git: "read",
};

export function finderWith(keepOut: readonly string[] = [], cacheDir?: string): SandboxFinder {
  return createSandboxFinder({
    world: realWorld({ level: "silent" }),
    keepOut,
    ...optional({ cacheDir }),
    environment: process.env,
  });
}

/**
 * Returns the reason why tests of a backend cannot run on this machine. In CI a missing sandbox is a failure.
 */
export async function whyNot(backend: "bubblewrap" | "docker"): Promise<string | undefined> {
  const probe = await finderWith().probe(backend);
  if (probe.usable) return undefined;
  const reason = `${backend} ${probe.why}`;
  if (process.env.CI !== undefined && backend === "bubblewrap") throw new Error(`CI must contain: ${reason}`);
  process.stderr.write(`SKIPPED, nothing is contained here: ${reason}\n`);
  return reason;
}

export interface Shell {
  readonly limits?: Partial<RunLimits>;
  readonly needs?: Partial<SandboxNeeds>;
  readonly workspace?: string;
}

export interface Shown {
  readonly ending: string;
  readonly exitCode: number | null;
  readonly full: boolean;
  readonly text: string;
}

/**
 * All sandboxes of this process share the folder for compiled code, and the list of folders that no sandbox
 * may contain.
 */
const cacheDir = mkdtempSync(join(tmpdir(), "parley-sandbox-cache-"));
process.once("exit", () => rmSync(cacheDir, { recursive: true, force: true }));
const keptOut: string[] = [];
let shared: SandboxFinder | undefined;

/** Returns the finder that all sandboxes share, because a new finder first tests the backend. */
function sharedFinder(): SandboxFinder {
  shared ??= finderWith(keptOut, cacheDir);
  return shared;
}

/** A temporary folder with a workspace and tools, for one test. */
export class Box {
  readonly folder: string;
  readonly workspace: string;
  readonly outside: string;
  readonly finder: SandboxFinder;
  readonly backend: "bubblewrap" | "docker";

  constructor(backend: "bubblewrap" | "docker" = "bubblewrap") {
    this.backend = backend;
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), "parley-sandbox-")));
    this.workspace = join(this.folder, "workspace");
    this.outside = join(this.folder, "outside");
    this.finder = sharedFinder();
    keptOut.push(this.outside);
  }

  async sandbox(shell: Shell = {}): Promise<Sandbox> {
    const needs = { ...NEEDS, backend: this.backend, ...shell.needs };
    const found = await this.finder.find(needs, shell.workspace ?? this.workspace);
    if (!found.ok) throw new Error(`${found.error} ${found.hint}`);
    return found.value;
  }

  async run(command: string, shell: Shell = {}): Promise<Shown> {
    const sandbox = await this.sandbox(shell);
    return shown(await sandbox.run({ kind: "shell", command }, limitsOf(shell.limits)));
  }

  /** Runs a command, expects it to succeed, and returns its output. */
  async says(command: string, shell: Shell = {}): Promise<string> {
    const { ending, exitCode, text } = await this.run(command, shell);
    expect({ ending, exitCode, text }).toMatchObject({ ending: "ended", exitCode: 0 });
    return text.trimEnd();
  }

  async tool(name: string, args: Record<string, unknown>, shell: Shell = {}): Promise<ToolResult> {
    const tool = [...fileTools, execTool].find(({ spec }) => spec.name === name);
    if (tool === undefined) throw new Error(`no tool ${name}`);
    const ctx = await this.#context(shell);
    return toolResult(await tool.execute(ctx, args, { callId: "c", attempt: 1, name, arguments: args }));
  }

  /** Reads a whole file, as `send_file` does. */
  async take(path: string, maxBytes: number): Promise<Result<{ path: string; content: string }>> {
    return takeFile(await this.#context({}), path, maxBytes);
  }

  async #context(shell: Shell): Promise<ToolContext> {
    const workspace = shell.workspace ?? this.workspace;
    return {
      agent: { workspace, sandbox: { ...NEEDS, ...shell.needs } },
      settings: {
        tools: { exec: { timeoutSeconds: 60, maxOutputBytes: 10_000 }, fetch: { allowHosts: [] } },
      },
      signal: shell.limits?.signal ?? new AbortController().signal,
      engine: { newId: () => "id", now: () => Date.now() },
      sandbox: await this.sandbox(shell),
    } as unknown as ToolContext;
  }

  /** Returns the folders of compiled code, one for each workspace. */
  codeCaches(): string[] {
    return readdirSync(cacheDir);
  }

  remove(): void {
    keptOut.splice(keptOut.indexOf(this.outside), 1);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function limitsOf(limits: Partial<RunLimits> = {}): RunLimits {
  return { timeoutMs: PATIENCE_MS, outputMaxBytes: 20_000, signal: new AbortController().signal, ...limits };
}

export function shown(end: Result<ContainedEnd>): Shown {
  if (!end.ok) throw new Error(end.error);
  const { ending, exitCode, full, output } = end.value;
  return { ending, exitCode, full, text: output.read().text };
}

/** Returns the ids of processes on this machine whose command line contains a text. Zombies are left out. */
export function running(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      try {
        const state = /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
        return state !== "Z" && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text);
      } catch {
        return false;
      }
    });
}

/** Returns the source of a program that runs this test's sandbox in a separate process. */
export function gatewayProgram(box: Box, body: string): string {
  const kit = fileURLToPath(new URL("../../src/sandbox/find.ts", import.meta.url));
  const world = fileURLToPath(new URL("../../src/world.ts", import.meta.url));
  return `
    import { createSandboxFinder } from ${JSON.stringify(kit)};
    import { realWorld } from ${JSON.stringify(world)};
    const finder = createSandboxFinder({ world: realWorld({ level: "silent" }), keepOut: [] });
    const needs = { backend: "bubblewrap", network: false, memoryMb: 256, processesMax: 64, diskMb: 64 };
    const found = await finder.find(needs, ${JSON.stringify(box.workspace)});
    const limits = { timeoutMs: ${PATIENCE_MS}, outputMaxBytes: 9_999, signal: new AbortController().signal };
    const box = {
      run: (command) => found.value.run({ kind: "shell", command }, limits),
      says: async (command) => (await box.run(command)).value.output.read().text,
    };
    ${body}`;
}
