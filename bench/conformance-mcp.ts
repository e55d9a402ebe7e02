// Runs the official conformance suite of MCP, and the official inspector, against a gateway of this checkout.
// Installs them from npm into a temporary folder. Prints a table of each. Exit code 1: a request of the
// inspector failed, or a scenario that needs no tool, resource or prompt of the suite's own.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { install } from "./coding-agents.ts";
import { inspect } from "./inspector.ts";
import { withGateway } from "./with-gateway.ts";

const SUITE = "@modelcontextprotocol/conformance";
const VERSION = "0.1.16";
const SCENARIO_MAX_MS = 60_000;
/** Beginnings of the names of scenarios that use tools, resources or prompts of the suite's own server. */
const NEEDS_ITS_OWN = [
  "tools-call-",
  "resources-read-",
  "resources-templates-",
  "resources-subscribe",
  "resources-unsubscribe",
  "prompts-get-",
  "elicitation-",
  "json-schema-",
  "completion-complete",
  "server-sse-polling",
];
const run = promisify(execFile);

/** Passes requests on with the token, because the suite sends none. */
async function withToken(gateway: URL): Promise<Server> {
  const server = createServer((from, to) => {
    const headers = { ...from.headers, authorization: `Bearer ${TOKEN}` };
    const { hostname: host, port } = gateway;
    const sent = httpRequest({ host, port, path: from.url, method: from.method, headers }, (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(to);
    });
    sent.on("error", () => to.destroy());
    to.on("close", () => sent.destroy());
    from.pipe(sent);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return server;
}

/** Runs the suite's command. Returns what it printed, and whether it succeeded. */
async function suite(folder: string, args: readonly string[]): Promise<{ ok: boolean; text: string }> {
  const program = join(folder, "node_modules", SUITE, "dist", "index.js");
  try {
    const { stdout } = await run(process.execPath, [program, ...args], { timeout: SCENARIO_MAX_MS });
    return { ok: true, text: stdout };
  } catch (error) {
    return { ok: false, text: String((error as { stdout?: unknown }).stdout ?? error) };
  }
}

const folder = mkdtempSync(join(tmpdir(), "parley-mcp-conformance-"));
const home = join(folder, "home");
const rows: string[] = [];
let failed = 0;
try {
  await install(folder, { dependencies: { [SUITE]: VERSION } });
  const { text } = await suite(folder, ["list"]);
  const [ofServers = ""] = text.split("Client scenarios");
  const scenarios = [...ofServers.matchAll(/^ {2}- (\S+)/gm)].map(([, name = ""]) => name);
  if (scenarios.length === 0) throw new Error(`the suite lists no scenario: ${text}`);
  await withGateway(home, {}, async ({ httpUrl }) => {
    failed += await inspect(join(folder, "inspector"), httpUrl, home);
    const server = await withToken(new URL(httpUrl));
    const url = `http://localhost:${(server.address() as AddressInfo).port}/mcp`;
    try {
      for (const name of scenarios) {
        const { ok } = await suite(folder, ["server", "--url", url, "--scenario", name]);
        const isOwn = NEEDS_ITS_OWN.some((one) => name.startsWith(one));
        if (!ok && !isOwn) failed += 1;
        const otherwise = isOwn ? "needs the suite's own server" : "FAILS";
        rows.push(`| ${name} | ${ok ? "passes" : otherwise} |`);
      }
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log([`| scenario of ${SUITE} ${VERSION} | result |`, "|---|---|", ...rows].join("\n"));
process.exitCode = failed === 0 ? 0 : 1;
