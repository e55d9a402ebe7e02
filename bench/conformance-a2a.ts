// Runs the official conformance suite of A2A (a2aproject/a2a-tck, in Python) against a gateway of this
// checkout. Downloads it with git, or takes `--suite DIR`. Needs python3 with pytest, httpx and jsonschema.
// Writes the table between two markers in docs/reference/TRIED.md. Exit code 1: a test failed that is not
// expected to, or one passed that is.
// The suite wants an agent that acts by the beginning of each message's id. A proxy before the gateway tells
// it to the scripted model and adds the token, which the suite does not have. It gives a repeated id a new
// one, because the suite uses one id for different messages, and keeps notifications on this machine.

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { GatewayClient } from "../src/contract/client/node.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../tests/kit/model-server/server.ts";
import { call } from "../tests/kit/model-server/steps.ts";
import { typed } from "../tests/kit/typed.ts";
import { passOn } from "./pass-on.ts";
import { writeTable } from "./table.ts";
import { withGateway } from "./with-gateway.ts";

const PAGE = fileURLToPath(new URL("../docs/reference/TRIED.md", import.meta.url));
const SUITE = "https://github.com/a2aproject/a2a-tck";
/** The newest commit of the branch for version 1.0 of the protocol. */
const COMMIT = "357c4a87afa2818731590647cccbea31c31733a2";
const SUITE_MAX_MS = 540_000;
/** Tests that fail, by a part of their names, and why that is right. */
const EXPECTED: readonly (readonly [part: RegExp, why: string])[] = [
  [
    /uses_aip193_format|test_error_content_type|test_response_content_type/,
    "The suite wants `application/json`; the protocol names `application/a2a+json`.",
  ],
  [/CORE-SEND-003/, "The file's type is refused, as the title of the test says; the suite wants success."],
  [
    /content_type_not_supported_error/,
    "The body is Python's form of the request, which is not JSON (-32700).",
  ],
  [/TestFileUrlArtifact/, "An agent's files are sent whole, not as addresses."],
  [/TestDataArtifact/, "The answer of an agent is a text."],
  [
    /TestMessageResponse/,
    "Each message becomes a task. An agent may choose that; the suite wants a message.",
  ],
  [
    /TestAgentCardLastModified/,
    "`ETag` says whether a card has changed. The protocol does not require both.",
  ],
];
/** Runs the suite without the libraries of gRPC, which Parley has not, and writes the result of each test. */
const PLUGIN = `
import json, os, sys
from unittest.mock import MagicMock
for name in ("grpc", "google", "google.rpc", "google.protobuf", "google.protobuf.json_format",
             "google.protobuf.descriptor", "specification.generated"):
    sys.modules[name] = MagicMock()
def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        state = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        crash = getattr(report.longrepr, "reprcrash", None)
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else crash.message if crash else ""
        with open(os.environ["PARLEY_RESULTS"], "a") as file:
            file.write(json.dumps([report.nodeid, state, getattr(report, "wasxfail", why)]) + "\\n")
`;
const run = promisify(execFile);

type Result = readonly [name: string, state: "passed" | "failed" | "skipped" | "xfailed", why: string];
type Json = Record<string, unknown>;

interface Proxied {
  readonly client: GatewayClient;
  /** The address to which notifications go. */
  readonly sink: string;
  /** Ids of messages. */
  readonly seen: Set<string>;
}

/** The beginning of the id of the message that the suite sent last. It sends one after the other. */
let scenario = "";

/** Acts as the suite's scenarios describe. */
function play({ toolResults }: ServedRequest): Answer {
  const path = "output.txt";
  switch (scenario) {
    case "artifact-text":
      return "Generated text content";
    case "artifact-file":
      if (toolResults.length === 0) return [call("write", { path, content: "Generated file content" })];
      return toolResults.length === 1 ? [call("send_file", { path })] : "NO_REPLY";
    case "input-required":
      return toolResults.length === 0 ? [call("exec", { command: "rm -f output.txt" })] : "Hello from TCK";
    default:
      return "Hello from TCK";
  }
}

/** Changes a request of the suite. */
async function adapt(text: string, { seen, sink, client }: Proxied): Promise<string> {
  let body: Json;
  try {
    body = JSON.parse(text) as Json;
  } catch {
    return text;
  }
  const params = (body.params ?? body) as Json;
  const message = params.message as Json | undefined;
  const { messageId } = message ?? {};
  if (message !== undefined && typeof messageId === "string" && messageId !== "") {
    scenario = /^tck-(.*)-[0-9a-f]{8}$/.exec(messageId)?.[1] ?? "";
    if (seen.has(messageId)) message.messageId = `${messageId}-${seen.size}`;
    seen.add(String(message.messageId));
    // The suite continues a task that asks by any message. Here an answer names what it allows.
    if (scenario !== "input-required" && message.taskId !== undefined) {
      const { permissions } = await client.request("permissions.list", {});
      const asked = permissions.find(({ runId }) => runId === message.taskId);
      if (asked !== undefined) message.parts = [{ text: `allow ${asked.id}` }];
    }
  }
  const { taskPushNotificationConfig } = (params.configuration ?? {}) as Json;
  for (const config of [params, taskPushNotificationConfig as Json | undefined])
    if (typeof config?.url === "string") config.url = `${sink}/?to=${encodeURIComponent(config.url)}`;
  return JSON.stringify(body);
}

/** Runs `work` with the address of a web server. */
async function withServer<T>(listener: RequestListener, work: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(listener);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    return await work(`http://localhost:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Passes a notification on, if it is for a receiver of the suite on this machine. */
const notify: RequestListener = async (from, to) => {
  const pieces: Buffer[] = [];
  for await (const piece of from) pieces.push(piece as Buffer);
  const target = new URL(new URL(from.url ?? "", "http://localhost").searchParams.get("to") ?? "");
  const { authorization = "" } = from.headers;
  const headers = { authorization, "content-type": "application/json" };
  if (target.hostname === "localhost")
    await fetch(target, { method: "POST", headers, body: Buffer.concat(pieces) }).catch(console.error);
  to.writeHead(204).end();
};

/** Passes the suite's requests on to the gateway. */
function proxyTo(gateway: string, proxied: Proxied): RequestListener {
  return (from, to) => passOn(from, to, gateway, (body) => adapt(body, proxied));
}

async function runSuite(suite: string, folder: string, url: string): Promise<Result[]> {
  const results = join(folder, "results.jsonl");
  writeFileSync(join(folder, "without_grpc.py"), PLUGIN);
  writeFileSync(join(folder, "pytest.ini"), "[pytest]\n");
  writeFileSync(results, "");
  // The suite waits five seconds for the card, and the gateway loads the protocol at the first request.
  await fetch(`${url}/.well-known/agent-card.json`);
  const args = ["-m", "pytest", "-q", "-c", join(folder, "pytest.ini"), "--rootdir", suite];
  const more = ["-p", "without_grpc", "-p", "no:cacheprovider", "tests/compatibility", "--sut-host", url];
  const env = { ...process.env, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: "1", PARLEY_RESULTS: results };
  const limits = { timeout: SUITE_MAX_MS, maxBuffer: 64 * 1024 * 1024 };
  // Failed tests are read from the file, so the exit code says nothing more.
  const said = await run("python3", [...args, ...more], { cwd: suite, env, ...limits }).catch(
    (ended: { stdout?: string; stderr?: string; killed?: boolean }) => ended,
  );
  if ("killed" in said && said.killed === true) throw new Error("the suite did not end in time");
  const lines = readFileSync(results, "utf8").split("\n").filter(Boolean);
  if (lines.length === 0) throw new Error(`the suite ran no test:\n${said.stdout}\n${said.stderr}`);
  return lines.map((line) => JSON.parse(line) as Result);
}

const values = typed(
  `npm run conformance:a2a -- [options]
  --suite DIR  run the suite's git checkout in DIR instead of downloading it
  --print      do not write docs/reference/TRIED.md`,
  { suite: { type: "string" }, print: { type: "boolean" } },
);
const folder = mkdtempSync(join(tmpdir(), "parley-a2a-conformance-"));
const home = join(folder, "home");
const workspace = join(folder, "work");
mkdirSync(workspace);
const model = await startModelServer(play);
const { id: _, ...provider } = model.provider("openai-completions");
let results: Result[];
let version: string;
try {
  const suite = resolve(values.suite ?? join(folder, "suite"));
  if (values.suite === undefined) {
    await run("git", ["clone", "--quiet", "--filter=blob:none", "--no-checkout", SUITE, suite]);
    await run("git", ["-C", suite, "checkout", "--quiet", COMMIT]);
  }
  version = (await run("git", ["-C", suite, "rev-parse", "--short=7", "HEAD"])).stdout.trim();
  results = await withServer(notify, (sink) => {
    const settings = {
      models: { providers: { one: provider } },
      agents: { defaults: { model: "one/test-model" }, list: [{ id: "tck", default: true, workspace }] },
      a2a: { expose: ["tck"], notifyHosts: [new URL(sink).host] },
    };
    return withGateway(home, settings, ({ httpUrl, client }) =>
      withServer(proxyTo(httpUrl, { client, sink, seen: new Set() }), (url) => runSuite(suite, folder, url)),
    );
  });
} finally {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
}

const nameOf = ([name]: Result): string => name.replace(/^tests\/compatibility\/|\.py|test_/g, "");
const whyOf = ([name]: Result) => EXPECTED.find(([part]) => part.test(name));
const groups = Map.groupBy(
  results.filter(([name]) => !/grpc/i.test(name)),
  (result) => nameOf(result).split("::")[0] ?? "",
);
const rows = [...groups].map(([group, tests]) => {
  const count = (states: readonly string[]) => tests.filter(([, state]) => states.includes(state)).length;
  return `| ${group} | ${count(["passed"])} | ${count(["skipped"])} | ${count(["failed", "xfailed"])} |`;
});
const reasons = EXPECTED.filter(([part]) =>
  results.some(([name, state]) => state === "failed" && part.test(name)),
);
console.log(
  results
    .flatMap((one) => (one[1] === "passed" ? [] : [`${one[1]} ${nameOf(one)}: ${one[2].slice(0, 300)}`]))
    .join("\n"),
);
const table = [
  `| tests of a2a-tck at ${version} | pass | do not apply | fail |`,
  "|---|---|---|---|",
  ...rows,
  "",
  ...reasons.map(([part, why]) => `- \`${part.source}\`: ${why}`),
];
console.log(table.join("\n"));
if (values.print !== true) writeTable(PAGE, "a2a", table);
const wrong = results.filter(
  (one) => (one[1] === "failed") !== (whyOf(one) !== undefined) && one[1] !== "skipped",
);
for (const one of wrong) console.error(`NOT EXPECTED: ${one[1]} ${nameOf(one)}`);
process.exitCode = wrong.length === 0 ? 0 : 1;
