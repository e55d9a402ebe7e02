// Checks Parley against the Agent Client Protocol, and prints a table. Towards editors: the requirements of
// tests/features/acp/conformance.ts. With `--dir FOLDER` also towards the programs that get session tools in
// a way of their own: installs them from npm into that folder (half a gigabyte, reused the next time), lets
// each call a session tool on a scripted model server, and checks each message against the schema. Writes the
// tables into docs/reference/TRIED.md. Exit code 1: something failed.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Message } from "../src/core/shapes/message.ts";
import { textOf } from "../src/core/shapes/message.ts";
import { checkAgent } from "../tests/features/acp/conformance.ts";
import { AcpChecker } from "../tests/features/acp/schema.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { type Answer, type ModelServer, startModelServer } from "../tests/kit/model-server/server.ts";
import { call } from "../tests/kit/model-server/steps.ts";
import { launch } from "../tests/kit/process/fleet.ts";
import { CODING_AGENTS, COPILOT, idOf, installAgent, runtimeOf } from "./coding-agents.ts";
import { writeTable } from "./table.ts";
import { withGateway } from "./with-gateway.ts";

const PAGE = fileURLToPath(new URL("../docs/reference/TRIED.md", import.meta.url));
const TAP = fileURLToPath(new URL("../tests/features/acp/tap.ts", import.meta.url));
const TURN_MAX_MS = 180_000;

const { values } = parseArgs({ options: { dir: { type: "string" } } });
const home = mkdtempSync(join(tmpdir(), "parley-acp-conformance-"));
let failures = 0;

/** Returns one row for each group of requirements, such as `CANCEL`. */
async function tryEditors(): Promise<string[]> {
  const own = join(home, "editors");
  mkdirSync(own);
  const outcomes = await withGateway(own, { agents: { list: [{ id: "main" }] } }, () =>
    checkAgent({ start: () => launch(own, ["acp"]), cwd: own, askingPrompt: "run: touch one" }),
  );
  const groups = new Map<string, { met: number; failed: string[] }>();
  for (const { id, why } of outcomes) {
    const name = /^ACP-(\w+)/.exec(id)?.[1]?.toLowerCase() ?? id;
    const group = groups.get(name) ?? { met: 0, failed: [] };
    if (why === undefined) group.met += 1;
    else group.failed.push(`${id}: ${why}`);
    groups.set(name, group);
  }
  return [...groups].map(([name, { met, failed }]) => {
    failures += failed.length;
    for (const line of failed) process.stderr.write(`${line}\n`);
    return `| ${name} | ${met} of ${met + failed.length} |`;
  });
}

/** The model of each coding agent: calls the tool that lists the sessions, once it has it. */
function play({ messages, toolNames, toolResults }: ServedRequest): Answer {
  const isAsked = messages.some(({ texts }) => texts.some((said) => said.includes("TASK list")));
  if (!isAsked || toolNames.length === 0) return "{}";
  if (toolResults.some((result) => result.includes("agent:other:main"))) return "I see the other session.";
  const tool = toolNames.find((name) => name.endsWith("sessions_list"));
  if (tool !== undefined) return toolResults.length > 1 ? "It was refused." : [call(tool, {})];
  // Claude Code offers tools of MCP servers only after the model has searched for them.
  const search = toolNames.find((name) => name === "ToolSearch");
  if (search === undefined || toolResults.length > 0) return "I have no such tool.";
  return [call(search, { query: "select:mcp__parley__sessions_list" })];
}

async function tryProgram(
  agent: (typeof CODING_AGENTS)[number],
  folder: string,
  server: ModelServer,
): Promise<string> {
  const own = join(home, idOf(agent));
  mkdirSync(own);
  await installAgent(agent, folder);
  const { command, ...runtime } = runtimeOf(agent, folder, server, own);
  const log = join(own, "lines");
  const tapped = [process.execPath, TAP, log, ...command];
  const agents = {
    list: [{ id: "main", runtime: { ...runtime, command: tapped, permissions: "allow" } }, { id: "other" }],
  };
  const tools = { sessions: { visibility: "all" }, agentToAgent: { enabled: true } };
  const said = await withGateway(own, { agents, tools }, async ({ client }) => {
    const idempotencyKey = crypto.randomUUID();
    await client.call("chat.send", { sessionKey: "main", message: "TASK list", idempotencyKey });
    await client.call("agent.wait", { runId: idempotencyKey, timeoutMs: TURN_MAX_MS });
    const page = await client.call<{ messages: Message[] }>("chat.history", { sessionKey: "main" });
    return page.messages.map(textOf);
  });
  const [ours, theirs] = [new AcpChecker(), new AcpChecker({ unstable: true })];
  for (const entry of readFileSync(log, "utf8").split("\n").filter(Boolean)) {
    const { by, line } = JSON.parse(entry) as { by: "agent" | "client"; line: string };
    for (const checker of [ours, theirs]) checker.check(by, line);
  }
  const wrong = ours.problems.filter((problem) => problem.startsWith("client:"));
  const odd = theirs.problems.filter((problem) => problem.startsWith("agent:")).length;
  const calls = said.at(-1) === "I see the other session.";
  if (wrong.length > 0 || !calls) {
    failures += 1;
    process.stderr.write(`${agent.name}: ${JSON.stringify({ wrong, said }, undefined, 2)}\n`);
  }
  const { packageName, version } = agent.acp;
  const fits = wrong.length === 0 ? "yes" : `${wrong.length} do not`;
  const program = `${agent.name}, \`${packageName}\` ${version}`;
  const theirsFit = odd === 0 ? "yes" : `${odd} do not`;
  return `| ${program} | ${ours.count} | ${fits} | ${theirsFit} | ${calls ? "yes" : "no"} |`;
}

try {
  const editors = ["| requirements | met |", "|---|---|", ...(await tryEditors())];
  console.log(editors.join("\n"));
  if (values.dir !== undefined) {
    const server = await startModelServer(play);
    const rows: string[] = [];
    const claude = CODING_AGENTS.filter(({ name }) => name === "Claude Code");
    for (const agent of [...claude, COPILOT]) rows.push(await tryProgram(agent, resolve(values.dir), server));
    await server.close();
    const head = "| program | messages | Parley's fit the schema | its own fit | session tools work |";
    const programs = [head, "|---|---|---|---|---|", ...rows];
    console.log(programs.join("\n"));
    writeTable(PAGE, "acp-programs", programs);
  }
  writeTable(PAGE, "acp", editors);
} finally {
  rmSync(home, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;
