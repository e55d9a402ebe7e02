// Runs the command line of MCP's official inspector against a gateway, over HTTP and over standard input and
// output.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { LAUNCHER, TOKEN } from "../tests/kit/process/fleet.ts";
import { install } from "./coding-agents.ts";

const run = promisify(execFile);
const PACKAGE = "@modelcontextprotocol/inspector";
const VERSION = "2.12.0";
const CALL_MAX_MS = 60_000;
const SHOWN_CHARS = 500;

/** A request, its arguments, and a part of a correct answer. */
type Check = readonly [what: string, args: readonly string[], shows: RegExp];

const ofMethod = (method: string, ...more: string[]): string[] => ["--method", method, ...more];
const ofTool = (name: string, ...args: string[]): string[] =>
  ofMethod("tools/call", "--tool-name", name, ...args.flatMap((arg) => ["--tool-arg", arg]));

const CHECKS: readonly Check[] = [
  ["tools/list", ofMethod("tools/list"), /"sessions_inbox"/],
  ["tools/call sessions_list", ofTool("sessions_list"), /"structuredContent"/],
  [
    "tools/call sessions_send",
    ofTool("sessions_send", "sessionKey=main", "message=say hello"),
    /"reply": "hello"/,
  ],
  ["prompts/list", ofMethod("prompts/list"), /"delegate"/],
  [
    "prompts/get ask",
    ofMethod("prompts/get", "--prompt-name", "ask", "--prompt-args", "session=main", "message=hi"),
    /"role": "user"/,
  ],
  ["resources/list", ofMethod("resources/list"), /parley:\/\/inbox/],
  ["resources/read parley://inbox", ofMethod("resources/read", "--uri", "parley://inbox"), /agent:main:mcp:/],
  ["resources/templates/list", ofMethod("resources/templates/list"), /"resourceTemplates"/],
];

/** Installs the inspector, makes these requests, and prints a table. Returns the number of failures. */
export async function inspect(folder: string, httpUrl: string, home: string): Promise<number> {
  await install(folder, { dependencies: { [PACKAGE]: VERSION } });
  const program = join(folder, "node_modules/.bin/mcp-inspector");
  // Passed as options, because no configuration file contains the port of this gateway.
  const ways = {
    HTTP: [`${httpUrl}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${TOKEN}`],
    stdio: [process.execPath, LAUNCHER, "--url", httpUrl, "--token", TOKEN, "mcp", "-e", `HOME=${home}`],
  };
  const table = [`| request of ${PACKAGE} ${VERSION} | HTTP | stdio |`, "|---|---|---|"];
  let failed = 0;
  for (const [what, args, shows] of CHECKS) {
    const cells: string[] = [];
    for (const [way, target] of Object.entries(ways)) {
      const said = await run(program, ["--cli", ...target, ...args], { timeout: CALL_MAX_MS }).catch(
        (error: { stdout?: string; stderr?: string }) => error,
      );
      const good = !(said instanceof Error) && shows.test(said.stdout ?? "");
      cells.push(good ? "passes" : "FAILS");
      if (good) continue;
      failed += 1;
      process.stderr.write(`${what} over ${way}: ${`${said.stdout}${said.stderr}`.slice(0, SHOWN_CHARS)}\n`);
    }
    table.push(`| ${what} | ${cells.join(" | ")} |`);
  }
  console.log(`${table.join("\n")}\n`);
  return failed;
}
