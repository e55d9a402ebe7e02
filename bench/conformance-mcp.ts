// Runs the official conformance suite of MCP, and the official inspector, against a gateway of this checkout:
// as a server, with the tools that the suite calls (mcp-fixtures.ts), as a client (mcp-client.ts), and as an
// authorization server. Installs them from npm into a temporary folder, or into `--dir FOLDER`, which is
// reused the next time. `--part client`, `--part server` (without extensions) or `--part extensions` (of
// servers) runs one part, `--only TEXT` only scenarios whose names contain it. Prints two tables. If all
// scenarios ran, it writes the second one into docs/reference/TRIED.md.
// Exit code 1: a request of the inspector or a scenario failed.

import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { listenHere } from "../tests/kit/loopback.ts";
import { type Script, startModelServer } from "../tests/kit/model-server/server.ts";
import { call } from "../tests/kit/model-server/steps.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { install } from "./coding-agents.ts";
import { inspect } from "./inspector.ts";
import type { Order } from "./mcp-fixtures.ts";
import { passOn } from "./pass-on.ts";
import { writeTable } from "./table.ts";
import { withGateway } from "./with-gateway.ts";

const SUITE = "@modelcontextprotocol/conformance";
const VERSION = "0.2.0-alpha.12";
const REVISIONS = ["2025-11-25", "2026-07-28"];
const SUITE_MAX_MS = 120_000;
const SHOWN_CHARS = 3_000;
const OUTPUT_MAX_BYTES = 64 * 1024 * 1024;
const PAGE = fileURLToPath(new URL("../docs/reference/TRIED.md", import.meta.url));
const CLIENT = fileURLToPath(new URL("mcp-client.ts", import.meta.url));
const QUESTIONS = fileURLToPath(new URL("mcp-questions.ts", import.meta.url));
const WORKERS = 60;
const FIXTURES = new URL("mcp-fixtures.ts", import.meta.url).href;
const run = promisify(execFile);

const { values: options } = parseArgs({
  options: { dir: { type: "string" }, only: { type: "string" }, part: { type: "string" } },
});
const runsAll = options.only === undefined && options.part === undefined;
const runs = (part: string): boolean => (options.part ?? part) === part;
const folder = resolve(options.dir ?? mkdtempSync(join(tmpdir(), "parley-mcp-conformance-")));
const program = join(folder, "node_modules", SUITE, "dist", "index.js");

/** Runs the suite's command. Returns what it printed, and whether it succeeded. */
async function suite(args: readonly string[]): Promise<{ ok: boolean; text: string }> {
  const limits = { timeout: SUITE_MAX_MS, maxBuffer: OUTPUT_MAX_BYTES, cwd: folder };
  try {
    const { stdout } = await run(process.execPath, [program, ...args], limits);
    return { ok: true, text: stdout };
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: unknown; stderr?: unknown };
    return { ok: false, text: stdout === undefined ? String(error) : `${stdout}${stderr}` };
  }
}

interface Scenario {
  readonly name: string;
  /** Absent for an extension of the protocol. */
  readonly revision?: string;
}

/** Reads the scenarios of a part of the suite's list, once for each tested revision. */
function scenariosIn(text: string): Scenario[] {
  return [...text.matchAll(/^ {2}- (\S+) \[([^\]]*)\]/gm)].flatMap(([, name = "", revisions = ""]) => {
    if (options.only !== undefined && !name.includes(options.only)) return [];
    const tested = REVISIONS.filter((one) => revisions.includes(one));
    if (tested.length === 0) return [{ name, ...(revisions === "extension" ? {} : { revision: revisions }) }];
    return tested.map((revision) => ({ name, revision }));
  });
}

let failed = 0;
const counts = new Map<string, { run: number; passed: number }>();

function record(part: string, { name, revision = "extensions" }: Scenario, ok: boolean, text: string): void {
  const of = `${part} | ${revision}`;
  const count = counts.get(of) ?? { run: 0, passed: 0 };
  counts.set(of, { run: count.run + 1, passed: count.passed + Number(ok) });
  if (ok) return;
  failed += 1;
  console.error(`${part} ${name} ${revision}\n${text.slice(-SHOWN_CHARS)}`);
}

const runOf = ({ name, revision }: Scenario): string[] => [
  ...["--scenario", name],
  ...(revision === undefined ? [] : ["--spec-version", revision]),
];

/**
 * Runs all scenarios for servers, and records these. The suite runs all of a revision in one process, and
 * those of extensions with all others.
 */
async function testServer(url: string, scenarios: readonly Scenario[]): Promise<void> {
  for (const revision of [...REVISIONS, undefined]) {
    const wanted = scenarios.filter((one) => one.revision === revision);
    if (wanted.length === 0 || !runs(revision === undefined ? "extensions" : "server")) continue;
    const of = revision === undefined ? [] : ["--spec-version", revision];
    const { text } = await suite(["server", "--url", url, "--suite", "all", ...of]);
    const [, summary = ""] = text.split("=== SUMMARY ===");
    for (const scenario of wanted) {
      const line = summary.split("\n").find((one) => one.includes(` ${scenario.name}: `)) ?? "";
      const [, output = text] = text.split(`=== Running scenario: ${scenario.name} ===`);
      record("server", scenario, line.startsWith("✓"), output.split("===")[0] ?? "");
    }
  }
}

/** Runs the suite's test of an authorization server. Consents in place of a person. */
async function authorize(httpUrl: string): Promise<{ ok: boolean; text: string }> {
  const port = await freePort();
  const redirect = `http://127.0.0.1:${port}/callback`;
  const registered = await fetch(`${httpUrl}/oauth/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ client_name: "suite", redirect_uris: [redirect] }),
  });
  const { client_id: id } = (await registered.json()) as { client_id: string };
  const of = ["--url", httpUrl, "--client-id", id, "-p", String(port), "--resource", `${httpUrl}/mcp`];
  const child = spawn(process.execPath, [program, "authorization", ...of], { cwd: folder });
  let text = "";
  let isAsked = false;
  child.stderr.on("data", (piece) => {
    text += piece;
  });
  child.stdout.on("data", (piece) => {
    text += piece;
    const address = /^http\S*\/oauth\/authorize\S*$/m.exec(text)?.[0];
    if (address === undefined || isAsked) return;
    isAsked = true;
    void consent(address);
  });
  const late = setTimeout(() => child.kill(), SUITE_MAX_MS);
  const code = await new Promise((ended) => child.once("close", ended));
  clearTimeout(late);
  return { ok: code === 0, text };
}

async function consent(address: string): Promise<void> {
  const html = await (await fetch(address)).text();
  const form = new URLSearchParams({ token: TOKEN, answer: "allow", granted: "operator.read" });
  for (const [, name = "", value = ""] of html.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g))
    form.append(name, value.replaceAll("&amp;", "&"));
  await fetch(new URL("/oauth/authorize", address), { method: "POST", body: form });
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listenHere(server);
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Answers as the model of an agent that does what the message of a fixture says. */
const play: Script = async ({ lastUserText, toolResults, step }) => {
  const order = /\{".*\}/s.exec(lastUserText)?.[0];
  if (order === undefined || step !== "message") return "done";
  const { afterSeconds = 0, say = "", calls, fails } = JSON.parse(order) as Order;
  await pause(afterSeconds * 1_000, undefined, { ref: false });
  if (fails === true) return { status: 400, headers: {}, body: { error: { message: "refused" } } };
  if (calls === undefined) return say;
  return toolResults.length === 0 ? calls.map(({ name, args }) => call(name, args)) : toolResults.join();
};

const temporary = mkdtempSync(join(tmpdir(), "parley-mcp-home-"));
const model = await startModelServer(play);
try {
  await install(folder, { dependencies: { [SUITE]: VERSION } });
  const { text } = await suite(["list"]);
  const [ofServers = "", ofClients = ""] = text.split(/^\w.* scenarios \(.*$/m).slice(1);
  if (scenariosIn(`${ofServers}${ofClients}`).length === 0) throw new Error(`no scenario: ${text}`);
  for (const scenario of runs("client") ? scenariosIn(ofClients) : []) {
    const command = ["client", "--command", `${process.execPath} ${CLIENT}`, ...runOf(scenario)];
    const { ok, text: said } = await suite(command);
    record("client", scenario, ok, said);
  }
  const work = async ({ httpUrl }: { httpUrl: string }): Promise<void> => {
    if (runsAll) failed += await inspect(join(folder, "inspector"), httpUrl, temporary);
    const server = createServer((from, to) => passOn(from, to, httpUrl));
    try {
      await testServer(`http://localhost:${await listenHere(server)}/mcp`, scenariosIn(ofServers));
      if (options.only !== undefined || !runs("server")) return;
      const { ok, text: said } = await authorize(httpUrl);
      const scenario = { name: "authorization-code-grant", revision: REVISIONS.at(-1) ?? "" };
      record("authorization server", scenario, ok, said);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  };
  const { id: _, ...provider } = model.provider("openai-completions");
  const workers = Array.from({ length: WORKERS }, (_one, at) => ({
    id: `worker${at + 1}`,
    model: "one/test-model",
  }));
  const settings = {
    models: { providers: { one: provider } },
    agents: {
      defaults: { maxConcurrent: WORKERS },
      list: [{ id: "main", default: true, model: "offline/rehearsal" }, ...workers],
    },
    // Tools that a client calls again and again bring content from outside into its session.
    labels: { mode: "off" },
    tools: {
      agentToAgent: { enabled: true },
      sessions: { visibility: "all" },
      mcp: { servers: { suite: { command: process.execPath, args: [QUESTIONS], sampling: true } } },
    },
  };
  if (options.part !== "client") await withGateway(temporary, settings, work, ["--import", FIXTURES]);
} finally {
  await model.close();
  rmSync(temporary, { recursive: true, force: true });
  if (options.dir === undefined) rmSync(folder, { recursive: true, force: true });
}
const passed = [...counts].map(([of, { run: all, passed: good }]) => `| ${of} | ${good} of ${all} |`);
const table = [
  `| part of \`${SUITE}\` ${VERSION} | revision | scenarios that pass |`,
  "|---|---|---|",
  ...passed.sort(),
];
console.log(table.join("\n"));
if (runsAll) writeTable(PAGE, "mcp", table);
process.exitCode = failed === 0 ? 0 : 1;
