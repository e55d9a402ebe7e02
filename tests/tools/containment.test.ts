// Tools of a sandboxed session never run outside a sandbox, even if the caller provides no sandbox.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { execTool } from "../../src/tools/exec.ts";
import { fileTools } from "../../src/tools/files/files.ts";
import { toolResult } from "../../src/tools/tool.ts";
import { agentSettings, settingsWith } from "./app.ts";

let workspace: string;
beforeEach(() => {
  workspace = mkdtempSync(join(tmpdir(), "parley-contained-"));
  writeFileSync(join(workspace, "here"), "text");
});
afterEach(() => rmSync(workspace, { recursive: true, force: true }));

const ARGUMENTS: Readonly<Record<string, Record<string, unknown>>> = {
  grep: { pattern: "text" },
  glob: { pattern: "*" },
  exec: { command: "touch made" },
  read: { path: "here" },
  write: { path: "made", content: "" },
  edit: { path: "here", edits: [{ oldText: "text", newText: "other" }] },
};

test.each(Object.keys(ARGUMENTS))(
  "CO1: %s of a sandboxed session is refused if the caller provides no sandbox",
  async (name) => {
    const off = agentSettings("main", { workspace });
    const agent = { ...off, sandbox: { ...off.sandbox, mode: "all" as const } };
    const link = { key: "agent:main:main", agentId: "main", kind: "main", spawnDepth: 0 } as const;
    const call = async (settled: typeof agent | typeof off) => {
      const ctx = {
        agent: settled,
        settings: settingsWith({ agents: [settled] }),
        chain: [link] as const,
        signal: new AbortController().signal,
        engine: {
          newId: () => "id",
          now: () => 0,
          commit: (): Promise<never> => Promise.reject(new Error("no store")),
        },
      };
      const args = ARGUMENTS[name] ?? {};
      const tool = [execTool, ...fileTools].find(({ spec }) => spec.name === name);
      const answer = await tool?.execute(ctx, args, { callId: "c", attempt: 1, name, arguments: args });
      return answer && toolResult(answer);
    };
    expect(await call(agent)).toMatchObject({ status: "error", code: "sandbox_unavailable" });
    expect(existsSync(join(workspace, "made"))).toBe(false);
    expect(await call(off)).toMatchObject({ status: "ok" });
  },
);
