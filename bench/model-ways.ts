// Compares Parley's client of model servers with libraries by correctness: each gets the same difficult
// answers from a server on the loopback address. Prints a table of case and client, and the processor time
// for a streamed token. The libraries are not dependencies: npm installs them into another folder.
//
//   npm install --prefix DIR ai @ai-sdk/openai-compatible @ai-sdk/openai @ai-sdk/anthropic @ai-sdk/google \
//     @ai-sdk/mistral @earendil-works/pi-ai
//   node bench/model-ways.ts --packages DIR/node_modules [--also FILE] [--write FILE]
//
// FILE of --also is a module with the export `client`, a client of the type `WayClient`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { NOT_OVERFLOWS, OVERFLOWS } from "../tests/kit/dialects/overflow.ts";
import { freePort, serveHttp } from "../tests/kit/loopback.ts";
import { type Answered, CASES, overflowCases, type WayCase, type WayReply } from "./ways/cases.ts";
import { aiSdkClient, type Call, piClient, type WayClient } from "./ways/clients.ts";
import { parleyClient } from "./ways/parley.ts";

/** A client that settles later than this has not understood that the answer is complete. */
const PATIENCE_MS = 4_000;
const TOKENS = 20_000;
const ROUNDS = 3;

async function startServer() {
  let reply: WayReply = () => ({});
  const server = await serveHttp(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const { status = 200, type = "text/event-stream", pieces = [], isOpen = false } = reply(JSON.parse(text));
    response.writeHead(status, { "content-type": type });
    for (const piece of pieces) response.write(piece);
    if (!isOpen) response.end();
  });
  return {
    ...server,
    answer: (next: WayReply) => {
      reply = next;
    },
  };
}

async function settle(client: WayClient, call: Omit<Call, "signal">): Promise<Answered | "late"> {
  const abort = new AbortController();
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), PATIENCE_MS);
  const answered = client.answer({ ...call, signal: abort.signal }).catch((error: unknown): Answered => {
    return { text: "", thinking: "", calls: [], error: `threw ${String(error)}`, hasThrown: true };
  });
  try {
    return await Promise.race([answered, late.promise]);
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

type Verdict = "ok" | "wrong" | "late" | "throws";

function judge(one: WayCase, answered: Answered | "late"): Verdict {
  if (answered === "late") return "late";
  if (answered.hasThrown === true) return "throws";
  return one.isRight(answered) ? "ok" : "wrong";
}

type Rows = Map<string, Verdict[]>;

async function compare(clients: readonly WayClient[], cases: readonly WayCase[]): Promise<Rows> {
  const server = await startServer();
  const closed = `http://127.0.0.1:${await freePort()}`;
  const rows: Rows = new Map();
  for (const one of cases) {
    const { api, history = "none", reasoning = false, vendor, isClosed = false } = one;
    const baseUrl = `${isClosed ? closed : server.origin}/v1`;
    server.answer(one.reply);
    const verdicts: Verdict[] = [];
    for (const client of clients) {
      verdicts.push(judge(one, await settle(client, { api, history, reasoning, vendor, baseUrl })));
    }
    rows.set(`${api}: ${one.name}`, verdicts);
  }
  await server.close();
  return rows;
}

/** Measures processor time of this process in microseconds for each token of a long stream. */
async function measureTokens(client: WayClient, baseUrl: string): Promise<number> {
  const signal = new AbortController().signal;
  const call = { api: "openai-completions", reasoning: false, baseUrl, signal } as const;
  await client.answer({ ...call, history: `stream ${TOKENS / 10} 0` });
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = process.cpuUsage();
    await client.answer({ ...call, history: `stream ${TOKENS} 0` });
    const { user, system } = process.cpuUsage(before);
    rounds.push((user + system) / TOKENS);
  }
  return Math.min(...rounds);
}

async function measureAll(clients: readonly WayClient[]): Promise<string[]> {
  const program = fileURLToPath(new URL("quick-model.ts", import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] });
  const [address] = (await once(child.stdout, "data")) as [Buffer];
  const costs: string[] = [];
  try {
    for (const client of clients) {
      const micros = await measureTokens(client, address.toString().trim()).catch(() => undefined);
      costs.push(micros === undefined ? "-" : micros.toFixed(1));
    }
  } finally {
    child.stdin.end();
  }
  return costs;
}

const countRight = (rows: Rows, at: number): number =>
  [...rows.values()].filter((verdicts) => verdicts[at] === "ok").length;

const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

const { values } = parseArgs({
  options: { packages: { type: "string" }, also: { type: "string" }, write: { type: "string" } },
});
if (values.packages === undefined) {
  console.error("--packages is missing: name the folder node_modules with the clients.");
  process.exit(2);
}
const packages = resolve(values.packages);
const clients = [await piClient(packages), await aiSdkClient(packages), parleyClient];
if (values.also !== undefined) {
  clients.push((await import(pathToFileURL(resolve(values.also)).href)).client as WayClient);
}
const names = clients.map(({ name }) => name);
const rows = await compare(clients, CASES);
const overflows = await compare(clients, overflowCases(OVERFLOWS, true));
const others = await compare(clients, overflowCases(NOT_OVERFLOWS, false));
const countLine = (label: string, counted: Rows): string =>
  line([`${label}, of ${counted.size}`, ...names.map((_, at) => `${countRight(counted, at)}`)]);
const table = [
  line(["case", ...names]),
  line(["---", ...names.map(() => "---")]),
  ...[...rows].map(([name, verdicts]) => line([name, ...verdicts])),
  countLine("**right**", rows),
  countLine("wordings of an overflow that are recognised", overflows),
  countLine("similar refusals that are not taken for one", others),
  line(["processor time per token, µs", ...(await measureAll(clients))]),
].join("\n");
console.log(table);
if (values.write !== undefined) writeFileSync(values.write, `${table}\n`);
process.exit(0);
