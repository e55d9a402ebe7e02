// Benchmarks answers at their size limits: how long the event loop is blocked while such an answer arrives,
// and when the session is used afterwards. `node bench/huge-answers.ts` runs only this part.

import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { type Ground, keyOf, MEMORY_FLAGS, onGround } from "./ground.ts";
import { type Row, table } from "./measure.ts";
import { watcher } from "./watcher.ts";

/** Number of tokens of 10 bytes; together 3.8 MiB. */
const TOKENS = 400_000;
/** Number of tool calls in one answer. Together their arguments have 4 MB. */
const CALLS = 256;
const CALL_BYTES = 15_000;
/** Number of lines that a command prints; together 1 MB. */
const LINES = 150_000;
/** Time for the work that the gateway does after the end of the run. */
const AFTER_MS = 1_500;

/** Starts a server that receives the requests of an outgoing hook. */
async function receiver() {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().once("end", () => outgoing.end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, close: () => server.close() };
}

async function run(client: GatewayClient, session: number, message: string): Promise<void> {
  const end = await client.agent({ sessionKey: keyOf(session), message }).done;
  if (end.status !== "ok") throw new Error(`a run ended with ${end.code}: ${end.summary}`);
}

/** Requests an answer over the OpenAI-compatible endpoint, streamed or not. */
async function complete({ url }: Ground, session: number, stream: boolean): Promise<void> {
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    "content-type": "application/json",
    "x-parley-session-key": keyOf(session),
  };
  const messages = [{ role: "user", content: `stream ${TOKENS} 0` }];
  const body = JSON.stringify({ model: `parley/a${session}`, stream, messages });
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(`an OpenAI client got ${answer.status}`);
  await answer.arrayBuffer();
}

/** Returns the peak memory of a process since the last call, in MB. */
function peakMemory(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1_024;
}

function cases(ground: Ground, client: GatewayClient): Record<string, () => Promise<unknown>> {
  const invoke = (name: string, args: object) =>
    client.request("tools.invoke", { sessionKey: keyOf(1), name, args });
  const history = (session: number) =>
    client.request("chat.history", { sessionKey: keyOf(session), limit: 1_000 });
  return {
    "an answer of 3.8 MiB": () => run(client, 0, `stream ${TOKENS} 0`),
    "the next run of its session": () => run(client, 0, "go on"),
    "its history": () => history(0),
    "its history, asked for by a tool": () => invoke("sessions_history", { sessionKey: keyOf(0) }),
    "a search that finds it": () => invoke("sessions_search", { query: "word00042" }),
    "the same answer, streamed to an OpenAI client": () => complete(ground, 2, true),
    "the same answer in one piece": () => complete(ground, 3, false),
    [`an answer with ${CALLS} calls, 3.7 MiB of arguments`]: () =>
      run(client, 4, `calls ${CALLS} ${CALL_BYTES}`),
    "the next run behind the calls": () => run(client, 4, "go on"),
    "the history of the calls": () => history(4),
    "a tool result of 1 MiB": () => run(client, 5, `call exec {"command":"seq 1 ${LINES}"}`),
    "the next run behind the result": () => run(client, 5, "go on"),
  };
}

export async function hugeAnswers(): Promise<Row[]> {
  const hook = await receiver();
  const hooks = {
    outgoing: [{ name: "one", url: hook.url, events: ["run.ended"], secret: "a-secret-for-a-bench" }],
  };
  const tools = {
    exec: { approval: "never", maxOutputBytes: 1024 ** 2 },
    history: { maxBytes: 4 * 1024 ** 2, maxTextChars: 1_000_000 },
  };
  try {
    return await onGround({ sessions: 8, flags: MEMORY_FLAGS, hooks, tools }, async (ground) => {
      const client = await ground.all();
      const watching = [await watcher(ground.url, ["text-deltas"]), await watcher(ground.url, [])];
      for (let times = 0; times < 6; times += 1) await run(client, 7, "stream 2000 0");
      const rows: Row[] = [];
      for (const [size, work] of Object.entries(cases(ground, client))) {
        peakMemory(ground.pid);
        await ground.memory();
        await work();
        await new Promise((resolve) => setTimeout(resolve, AFTER_MS));
        const peak = peakMemory(ground.pid);
        const { worstDelayMs, worstStepMs } = await ground.memory();
        const target = "max < 50";
        rows.push(
          { name: "the event loop stands still", size, unit: "ms", samples: [worstDelayMs], target },
          { name: "processor time of the longest step", size, unit: "ms", samples: [worstStepMs], target },
          { name: "peak memory", size, unit: "MB", samples: [peak] },
        );
      }
      for (const { leave } of watching) leave();
      client.close();
      return rows;
    });
  } finally {
    hook.close();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(table(await hugeAnswers()));
