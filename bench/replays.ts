// Benchmarks the replay of a long chain. A real gateway process records the chain: an agent sends messages
// to a hundred others, which read, write and run commands. The model server answers at once, so nearly all of
// the chain's time is the gateway's own. `node bench/replays.ts` runs only this part.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readRecord } from "../src/contract/chain-record.ts";
import type { GatewayClient } from "../src/contract/client/node.ts";
import type { PayloadOf } from "../src/contract/methods.ts";
import type { ChainRecord } from "../src/core/shapes/record/chain.ts";
import { replayIn } from "../src/features/replay/play/play.ts";
import { realWorld } from "../src/world.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../tests/kit/model-server/server.ts";
import { call, type Step } from "../tests/kit/model-server/steps.ts";
import { until } from "../tests/kit/until.ts";
import { inFolder } from "./in-folder.ts";
import type { Row } from "./measure.ts";
import { withGateway } from "./with-gateway.ts";

/** Number of messages of the first agent in each of its answers, and of such answers. */
const [AT_ONCE, ROUNDS] = [10, 10];
const ENTRIES_MIN = 5_000;
const REPLAYS = 5;

/** The calls of each other agent between its message and its answer. */
const CALLS = Array.from({ length: 23 }, (_, at) => (["read", "exec", "read", "write"] as const)[at % 4]);

const ARGUMENTS = {
  read: { path: "notes.txt" },
  write: { path: "notes.txt", content: "One line of notes.\n".repeat(3) },
  exec: { command: "wc -l notes.txt" },
};

const sendTo = (at: number): Step =>
  call("sessions_send", {
    sessionKey: `agent:worker-${at}:main`,
    message: "Read the notes.",
    timeoutSeconds: 60,
  });

function answerTo({ agentId, step, toolResults }: ServedRequest): Answer {
  if (step === "reply") return "REPLY_SKIP";
  if (step === "announce") return "ANNOUNCE_SKIP";
  const at = toolResults.length;
  if (agentId !== "main") {
    const name = CALLS[at];
    return name === undefined ? "I read the notes and changed two lines." : [call(name, ARGUMENTS[name])];
  }
  if (at >= AT_ONCE * ROUNDS) return "Everybody has answered.";
  return Array.from({ length: AT_ONCE }, (_, place) => sendTo(at + place));
}

/** Runs the chain, and returns its record. */
async function chain(client: GatewayClient): Promise<ChainRecord> {
  await client.agent({ sessionKey: "agent:main:main", message: "Ask everybody." }).done;
  // The conversations end after the first run.
  const chainId = await until(async () => {
    const { chains } = await client.request("chains.list", {});
    return chains.find(({ active }) => !active)?.chainId;
  });
  let text = "";
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const page: PayloadOf<"chains.record"> = await client.request("chains.record", { chainId, offset });
    text += page.text;
    offset = page.nextOffset;
  }
  const record = readRecord(text);
  if (!record.ok) throw new Error(record.error);
  return record.value;
}

async function recorded(home: string): Promise<ChainRecord> {
  const model = await startModelServer(answerTo);
  try {
    const { api, baseUrl, apiKey } = model.provider("openai-completions");
    const workers = Array.from({ length: AT_ONCE * ROUNDS }, (_, at) => ({ id: `worker-${at}` }));
    const settings = {
      models: { providers: { openai: { api, baseUrl, apiKey, models: [{ id: "quick" }] } } },
      agents: {
        defaults: { model: "openai/quick", workspace: join(home, "work"), maxConcurrent: AT_ONCE },
        list: [{ id: "main", default: true }, ...workers],
      },
      session: { agentToAgent: { maxChainRuns: 1_000 } },
      tools: { agentToAgent: { enabled: true, allow: ["*"] }, sessions: { visibility: "all" } },
    };
    return await withGateway(home, settings, ({ client }) => chain(client));
  } finally {
    await model.close();
  }
}

export async function replays(): Promise<Row[]> {
  const record = await inFolder(recorded);
  const { entries, runs } = record;
  if (entries.length < ENTRIES_MIN) throw new Error(`the chain has only ${entries.length} steps`);
  const begin = Math.min(...runs.map(({ acceptedAt }) => acceptedAt));
  const took = Math.max(...runs.map(({ endedAt = begin }) => endedAt)) - begin;
  const replay = replayIn(realWorld({ level: "silent" }));
  const samples: number[] = [];
  for (let at = 0; at < REPLAYS; at += 1) {
    const from = performance.now();
    const replayed = await replay(record);
    samples.push(performance.now() - from);
    if (!replayed.ok) throw new Error(replayed.error);
    const { difference } = replayed.value;
    if (difference !== undefined) throw new Error(`the replay differs: ${JSON.stringify(difference)}`);
  }
  const size = `a chain of ${entries.length} steps, ${runs.length} runs`;
  return [
    { name: "the chain itself, with a model that answers at once", size, unit: "ms", samples: [took] },
    { name: "its replay", size, unit: "ms", samples },
    {
      name: "a replay's share of the chain's time",
      size,
      unit: "%",
      samples: samples.map((ms) => (ms / took) * 100),
      target: "< 10",
    },
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { machine, table } = await import("./measure.ts");
  console.log(`${machine()}\n\n${table(await replays())}`);
}
