// Benchmarks streamed answers: the bytes that a subscribed client receives, processor time per token, delay,
// and how long a huge answer blocks the gateway. `node bench/streaming.ts` runs only this part.

import { fileURLToPath } from "node:url";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { processorSeconds } from "../tests/kit/load/memory.ts";
import { type Ground, keyOf, MEMORY_FLAGS, onGround } from "./ground.ts";
import { hugeAnswers } from "./huge-answers.ts";
import { type Row, table } from "./measure.ts";
import { watcher } from "./watcher.ts";

const TOKENS = 4_000;
const HUGE_TOKENS = 400_000;

/** Executes runs in several sessions at once; returns the milliseconds of each. */
async function runs(ground: Ground, sessions: number, message: string): Promise<number[]> {
  const clients: GatewayClient[] = [];
  while (clients.length < sessions) clients.push(await ground.of(clients.length));
  const took = await Promise.all(
    clients.map(async (client, at) => {
      const from = performance.now();
      const end = await client.agent({ sessionKey: keyOf(at), message }).done;
      if (end.status !== "ok") throw new Error(`a run ended with ${end.code}: ${end.summary}`);
      return performance.now() - from;
    }),
  );
  for (const client of clients) client.close();
  return took;
}

/** Returns the KB that one subscribed client receives for one answer. */
async function bytesOf(ground: Ground, caps: readonly string[], rate: number): Promise<number> {
  const { counted, leave } = await watcher(ground.url, caps);
  await runs(ground, 1, `stream ${TOKENS} ${rate}`);
  leave();
  return counted.bytes / 1_024;
}

async function tokenCost(
  ground: Ground,
  sessions: number,
  perSecond: number,
  tokens: number,
): Promise<number> {
  const before = processorSeconds(ground.pid);
  await runs(ground, sessions, `stream ${tokens} ${perSecond}`);
  return ((processorSeconds(ground.pid) - before) * 1e6) / (sessions * tokens);
}

export async function streaming(): Promise<Row[]> {
  return [...(await underLoad()), ...(await hugeAnswers())];
}

async function underLoad(): Promise<Row[]> {
  return onGround({ sessions: 256, flags: MEMORY_FLAGS }, async (ground) => {
    await runs(ground, 16, "stream 200 0");
    const size = `${TOKENS} tokens, 200 a second`;
    const deltas = await bytesOf(ground, ["text-deltas"], 200);
    const wholes = await bytesOf(ground, [], 200);
    const cost = await tokenCost(ground, 64, 200, 2_000);
    const watching = await watcher(ground.url, ["text-deltas"]);
    const watched = await tokenCost(ground, 64, 200, 2_000);
    const [tokens, perSecond] = [2_000, 50];
    const allowedMs = (tokens * 1_000) / perSecond;
    const late = (await runs(ground, 256, `stream ${tokens} ${perSecond}`)).map(
      (ms) => ((ms - allowedMs) * 100) / allowedMs,
    );
    const hugeMs = await runs(ground, 1, `stream ${HUGE_TOKENS} 0`);
    watching.leave();
    const many = "64 runs, 200 tokens a second each";
    const huge = `one answer of ${((HUGE_TOKENS * 10) / 2 ** 20).toFixed(1)} MiB`;
    return [
      {
        name: "an answer to a client with text-deltas",
        size,
        unit: "KB",
        samples: [deltas],
        target: "< 300",
      },
      { name: "the same to any other client", size, unit: "KB", samples: [wholes] },
      { name: "processor time of a token", size: many, unit: "µs", samples: [cost], target: "< 25" },
      {
        name: "the same with one watching client",
        size: many,
        unit: "µs",
        samples: [watched],
        target: "< 25",
      },
      {
        name: "runs end later than the model allows",
        size: `256 runs of ${tokens} tokens, 50 a second each, one watching client`,
        unit: "%",
        samples: late,
        target: "max < 5",
      },
      { name: "the run of this answer", size: huge, unit: "s", samples: hugeMs.map((ms) => ms / 1_000) },
    ] satisfies Row[];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(table(await streaming()));
