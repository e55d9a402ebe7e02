// Run by hand. Checks a real gateway with the command line of the official MCP inspector, over HTTP and over
// standard input and output. Not a test, because the inspector is not a dependency.
//
//   mkdir /tmp/inspector && cd /tmp/inspector && npm install @modelcontextprotocol/inspector
//   node bench/by-hand-mcp.ts /tmp/inspector

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf, LAUNCHER, launch, TOKEN, writeHome } from "../tests/kit/process/fleet.ts";

const [where = ""] = process.argv.slice(2);
const inspector = join(where, "node_modules", ".bin", "mcp-inspector");
const home = mkdtempSync(join(tmpdir(), "parley-by-hand-"));
writeHome(home, { gateway: { port: 0, auth: { token: TOKEN } } });
const gateway = launch(home, ["gateway"]);
const http = await addressOf(gateway);

let failed = 0;

/** Runs the inspector, and checks that its output matches `wanted`. */
function check(title: string, target: readonly string[], args: readonly string[], wanted: RegExp): void {
  const { status, stdout, stderr } = spawnSync(inspector, ["--cli", ...target, ...args], {
    encoding: "utf8",
  });
  const good = status === 0 && wanted.test(stdout);
  if (!good) failed++;
  console.log(`${good ? "ok  " : "FAIL"} ${title}`);
  if (!good)
    console.log(`  exit ${status}, wanted ${wanted}\n${stdout.slice(0, 2_000)}\n${stderr.slice(-2_000)}`);
}

const send = ["--method", "tools/call", "--tool-name", "sessions_send"];
const hello = ["--tool-arg", "sessionKey=main", "message=say hello"];
const OVER_HTTP = [`${http}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${TOKEN}`];
// Passed as options, because no configuration file contains the port of this gateway.
const address = ["--url", http, "--token", TOKEN];
const OVER_STDIO = [process.execPath, LAUNCHER, ...address, "mcp", "-e", `HOME=${home}`];

for (const [door, target] of [
  ["HTTP", OVER_HTTP],
  ["stdio", OVER_STDIO],
] as const) {
  check(`${door}: tools/list`, target, ["--method", "tools/list", "--strict"], /"sessions_inbox"/);
  check(
    `${door}: tools/call sessions_list`,
    target,
    ["--method", "tools/call", "--tool-name", "sessions_list"],
    /count/,
  );
  check(`${door}: tools/call sessions_send`, target, [...send, ...hello], /\\"status\\":\\"ok\\"/);
  check(`${door}: resources/list`, target, ["--method", "resources/list"], /parley:\/\/inbox/);
  check(
    `${door}: resources/read`,
    target,
    ["--method", "resources/read", "--uri", "parley://inbox"],
    /agent:main:mcp:/,
  );
}

gateway.kill("SIGTERM");
rmSync(home, { recursive: true, force: true });
console.log(failed === 0 ? "all passed" : `${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
