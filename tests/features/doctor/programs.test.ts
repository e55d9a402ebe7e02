// `parley doctor` says of each agent that is a program over ACP whether it asks before it acts.

import { expect, test } from "vitest";
import { makeHome, run } from "../../cli/kit.ts";

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
  readonly mend?: string;
}

/** Returns the findings about commands, for agents with these runtimes. */
async function findingsFor(runtimes: Record<string, object>): Promise<Finding[]> {
  const list = Object.entries(runtimes).map(([id, runtime]) => ({
    id,
    runtime: { type: "acp", ...runtime },
  }));
  const { home } = await makeHome({ agents: { list } });
  const { out } = await run(home, ["--json", "doctor", "--offline"]);
  const { findings } = JSON.parse(out) as { findings: Finding[] };
  return findings.filter(({ name }) => name === "approval" || name === "exec");
}

test.each([
  [["npx", "-y", "@agentclientprotocol/claude-agent-acp@0.100.0"], "Claude Code", 'mode "default"'],
  [["node", "/opt/node_modules/@agentclientprotocol/codex-acp/dist/index.js"], "Codex", 'mode "read-only"'],
  [["/usr/local/bin/gemini", "--acp"], "Gemini CLI", 'mode "default"'],
  [["qwen", "--acp"], "Qwen Code", 'mode "default"'],
  [
    ["/opt/node_modules/opencode-ai/bin/opencode.exe", "acp"],
    "opencode",
    "OPENCODE_PERMISSION, OPENCODE_DISABLE_PROJECT_CONFIG",
  ],
])("doctor knows how %j is made to ask", async (command, name, how) => {
  const isSafe = ["Codex", "opencode"].includes(name);
  const where = isSafe ? "" : " or those in its folder";
  const asked = `what may do more than read (${how}), unless its own settings${where} allow it`;
  const level = isSafe ? "ok" : "warning";
  expect(await findingsFor({ a: { command, permissions: "ask" }, b: { command } })).toMatchObject([
    {
      name: "approval",
      level,
      text: `a: ${name} runs with the rights of your user; an owner approves ${asked}`,
    },
    {
      name: "approval",
      level,
      text: `b: ${name} runs with the rights of your user; Parley denies ${asked}`,
    },
  ]);
});

test("doctor claims no approval for a program that it does not know, nor recommends a sandbox that the program refuses", async () => {
  const unknown = { command: ["/srv/qwen/start.sh"], permissions: "ask" };
  const own = {
    command: ["opencode", "acp"],
    permissions: "ask",
    env: { OPENCODE_PERMISSION: '{"bash":"allow"}', OPENCODE_DISABLE_PROJECT_CONFIG: "false" },
  };
  const found = await findingsFor({ unknown, own, all: { command: ["qwen"], permissions: "allow" } });
  expect(found.map(({ level }) => level)).toEqual(["warning", "warning", "warning"]);
  expect(found[0]?.text).toBe(
    "unknown: its program runs with the rights of your user, and Parley does not know what it does without asking",
  );
  expect(found[1]?.mend).toContain(
    "Remove OPENCODE_PERMISSION and OPENCODE_DISABLE_PROJECT_CONFIG from agents.list[own].runtime.env",
  );
  expect(found[2]?.text).toContain("everything that it asks for is allowed");
  expect(found[2]?.mend).toContain('agents.list[all].runtime.permissions: "ask"');
  expect(JSON.stringify(found)).not.toContain("sandbox");
});
