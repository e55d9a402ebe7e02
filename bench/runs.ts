// Benchmarks runs over WebSocket: a real gateway process, real clients, and a model server in a third process
// that answers at once. `node bench/runs.ts` runs only this part.

import { fileURLToPath } from "node:url";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { optional } from "../src/core/optional.ts";
import { type Ground, keyOf, onGround } from "./ground.ts";
import { percentile, type Row, sample } from "./measure.ts";

/**
 * Number of runs after which a session is reset, so that the transcripts stay short: long ones are measured
 * separately.
 */
const RESET_EVERY = 25;
const ONE_BY_ONE = 500;
/** Number of rounds of runs in many sessions at once. */
const ROUNDS = 5;
/** Number of runs before measuring, during which Node compiles hot code. */
const WARM_UP = 1_000;
/**
 * Number of runs at the start that are reported as a separate figure, because Node has not compiled hot code
 * yet.
 */
const FIRST = 200;

/**
 * Sends the same request as the gateway to the model server and reads the whole answer. This measures the
 * model call alone.
 */
export async function modelCall(modelUrl: string): Promise<void> {
  const messages = [
    { role: "system", content: "You are an assistant. ".repeat(100) },
    { role: "user", content: "hello" },
  ];
  const body = JSON.stringify({ model: "quick", stream: true, messages });
  const headers = { "content-type": "application/json", authorization: "Bearer a-key" };
  const response = await fetch(`${modelUrl}/chat/completions`, { method: "POST", headers, body });
  for await (const _ of response.body ?? []);
}

/** Executes a run, and resolves when the client knows of its end. */
async function oneRun(client: GatewayClient, session: number, message = "hello"): Promise<void> {
  const end = await client.agent({ sessionKey: keyOf(session), message }).done;
  if (end.status !== "ok") throw new Error(`a run ended with ${end.code}: ${end.summary}`);
}

export interface AtOnce {
  readonly samplesMs: readonly number[];
  readonly perSecond: number;
}

/** Executes runs in several sessions at once. A session's next run starts when its last one has ended. */
export async function runsAtOnce(
  clients: readonly GatewayClient[],
  runs: number,
  admin: GatewayClient,
  message?: string,
): Promise<AtOnce> {
  const samplesMs: number[] = [];
  let begun = 0;
  const work = async (client: GatewayClient, session: number): Promise<void> => {
    for (let at = 1; begun < runs; at += 1) {
      begun += 1;
      const from = performance.now();
      await oneRun(client, session, message);
      samplesMs.push(performance.now() - from);
      if (at % RESET_EVERY === 0) await admin.request("sessions.reset", { key: keyOf(session) });
    }
  };
  const from = performance.now();
  await Promise.all(clients.map(work));
  return { samplesMs, perSecond: (samplesMs.length * 1_000) / (performance.now() - from) };
}

async function inTurn(ground: Ground): Promise<readonly Row[]> {
  const [client, admin] = [await ground.of(0), await ground.all()];
  const size = "one session, one at a time";
  const calls = await sample(ONE_BY_ONE, WARM_UP, () => modelCall(ground.modelUrl));
  const run = async (at: number): Promise<void> => {
    if (at % RESET_EVERY === 0) await admin.request("sessions.reset", { key: keyOf(0) });
    await oneRun(client, 0);
  };
  const first = await sample(FIRST, 0, run);
  const runs = await sample(ONE_BY_ONE, WARM_UP - FIRST, run);
  const call = percentile(calls, 0.5);
  client.close();
  admin.close();
  return [
    { name: "the model's own HTTP call", size, unit: "ms", samples: calls },
    {
      name: "run over WebSocket",
      size: `${size}: the first ${FIRST} of a process`,
      unit: "ms",
      samples: first,
    },
    { name: "run over WebSocket", size, unit: "ms", samples: runs },
    {
      name: "run overhead over WebSocket: without the model's call (its p50)",
      size,
      unit: "ms",
      samples: runs.map((ms) => ms - call),
      target: "p50 < 5",
    },
  ];
}

async function atOnce(sessions: number, runs: number, target?: string): Promise<readonly Row[]> {
  return onGround({ sessions }, async (ground) => {
    const admin = await ground.all();
    const clients: GatewayClient[] = [];
    for (let at = 0; at < sessions; at += 1) clients.push(await ground.of(at));
    await runsAtOnce(clients, WARM_UP, admin);
    const rounds: AtOnce[] = [];
    for (let round = 0; round < ROUNDS; round += 1) rounds.push(await runsAtOnce(clients, runs, admin));
    for (const client of [...clients, admin]) client.close();
    const size = `${sessions} sessions at once`;
    return [
      { name: "run over WebSocket", size, unit: "ms", samples: rounds.flatMap(({ samplesMs }) => samplesMs) },
      {
        name: "runs over WebSocket",
        size,
        unit: "/s",
        samples: rounds.map(({ perSecond }) => perSecond),
        ...optional({ target }),
      },
    ];
  });
}

export async function runs(): Promise<Row[]> {
  return [
    ...(await onGround({ sessions: 1 }, inTurn)),
    ...(await atOnce(16, 3_000, "> 600")),
    ...(await atOnce(256, 3_000)),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { machine, table } = await import("./measure.ts");
  console.log(`${machine()}\n\n${table(await runs())}`);
}
