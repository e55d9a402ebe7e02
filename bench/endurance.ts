// Benchmarks a gateway under heavy load: a thousand clients subscribed to everything, ten thousand runs that
// a crash interrupted, and ten thousand runs one after another. `node bench/endurance.ts [PART]` runs only
// this part; PART: fanOut, recovery, memory.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { memoryOf } from "../tests/kit/load/memory.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import type { Expected } from "./crowd.ts";
import { type Ground, keyOf, MEMORY_FLAGS, onGround } from "./ground.ts";
import type { Row } from "./measure.ts";
import { runsAtOnce } from "./runs.ts";

const CROWD = fileURLToPath(new URL("./crowd.ts", import.meta.url));
const CLIENTS = 1_000;
const NOTES = 50;
const BURST = 100;

async function notesTo(crowd: ChildProcess, notes: number, send: () => Promise<unknown>): Promise<number> {
  const ready = once(crowd, "message");
  crowd.send({ notes } satisfies Expected);
  await ready;
  const all = once(crowd, "message");
  const from = performance.now();
  await Promise.all([send(), all]);
  return performance.now() - from;
}

export async function fanOut(): Promise<Row[]> {
  return onGround({ sessions: 1 }, async (ground) => {
    const alone = memoryOf(ground.pid)?.rss ?? Number.NaN;
    const crowd = fork(CROWD, [ground.url.replace("http", "ws"), TOKEN, String(CLIENTS)]);
    try {
      await once(crowd, "message");
      const client = await ground.all();
      const inject = () => client.request("chat.inject", { sessionKey: keyOf(0), message: "a note" });
      const one: number[] = [];
      for (let at = 0; at < NOTES; at += 1) one.push(await notesTo(crowd, 1, inject));
      const many = await notesTo(crowd, BURST, () => Promise.all(Array.from({ length: BURST }, inject)));
      const grown = (memoryOf(ground.pid)?.rss ?? Number.NaN) - alone;
      client.close();
      const size = `${CLIENTS} clients`;
      return [
        { name: "a note, from request until the last client is told", size, unit: "ms", samples: one },
        {
          name: `notes in a burst of ${BURST}: told, all clients together`,
          size,
          unit: "/s",
          samples: [(BURST * CLIENTS * 1_000) / many],
        },
        { name: "gateway RSS for these clients, after the burst", size, unit: "MB", samples: [grown] },
      ];
    } finally {
      crowd.disconnect();
    }
  });
}

const UNFINISHED = 10_000;
const UNFINISHED_SESSIONS = 250;
const CONCURRENT = 64;
const LOOK_MS = 50;
const DONE_MAX_MS = 300_000;

interface Load {
  readonly lanes: { readonly queued: number; readonly running: number };
}

/** Waits until the gateway's numbers of queued and running runs satisfy a condition. */
async function untilLanes(client: GatewayClient, stand: (lanes: Load["lanes"]) => boolean): Promise<void> {
  for (const from = performance.now(); performance.now() - from < DONE_MAX_MS; ) {
    const { lanes } = await client.call<Load>("health");
    if (stand(lanes)) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error("the runs do not end");
}

async function accepted(ground: Ground): Promise<void> {
  const client = await ground.all();
  const each = UNFINISHED / UNFINISHED_SESSIONS;
  for (let at = 0; at < each; at += 1) {
    const keys = Array.from({ length: UNFINISHED_SESSIONS }, (_, session) => keyOf(session));
    await Promise.all(
      keys.map((sessionKey) => client.request("chat.send", { sessionKey, message: "hello" })),
    );
  }
  client.close();
}

export async function recovery(): Promise<Row[]> {
  const session = { queueMax: UNFINISHED };
  const options = { sessions: UNFINISHED_SESSIONS, maxConcurrent: CONCURRENT, session };
  return onGround(options, async (ground) => {
    await fetch(`${ground.modelUrl}/hold`, { method: "POST" });
    await accepted(ground);
    await ground.kill();
    await fetch(`${ground.modelUrl}/release`, { method: "POST" });
    const from = performance.now();
    await ground.start();
    const ready = await fetch(`${ground.url}/readyz`);
    if (ready.status !== 200) throw new Error(`/readyz says ${ready.status}`);
    const readyMs = performance.now() - from;
    const client = await ground.all();
    await untilLanes(client, ({ queued, running }) => queued + running === 0);
    const done = performance.now() - from;
    client.close();
    const size = `${UNFINISHED} unfinished runs, ${CONCURRENT} of them begun`;
    return [
      { name: "after SIGKILL: start to /readyz", size, unit: "ms", samples: [readyMs] },
      { name: "after SIGKILL: start until the last has ended", size, unit: "s", samples: [done / 1_000] },
    ];
  });
}

const RUNS = 10_000;
const STEP = 1_000;
const WRITERS = 16;

export async function memory(): Promise<Row[]> {
  return onGround({ sessions: WRITERS, flags: MEMORY_FLAGS }, async (ground) => {
    const rows: Row[] = [];
    const note = async (at: number, size: string): Promise<void> => {
      const { rss, heapUsed } = await ground.memory();
      const point = (line: string, value: number): Row => ({
        name: line,
        size,
        unit: "MB",
        samples: [value],
        growth: { line, at },
      });
      rows.push(point("memory after runs: heap in use", heapUsed), point("memory after runs: RSS", rss));
    };
    const admin = await ground.all();
    const clients: GatewayClient[] = [];
    for (let at = 0; at < WRITERS; at += 1) clients.push(await ground.of(at));
    for (let done = 0; ; done += STEP) {
      await note(done, `${done} runs`);
      if (done === RUNS) break;
      await runsAtOnce(clients, STEP, admin);
    }
    for (const client of [...clients, admin]) client.close();
    await note(RUNS, `${RUNS} runs, clients gone`);
    return rows;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { machine, table } = await import("./measure.ts");
  const parts = { fanOut, recovery, memory };
  const wanted = Object.entries(parts).filter(([name]) => (process.argv[2] ?? name) === name);
  for (const [, part] of wanted) console.log(`${machine()}\n\n${table(await part())}`);
}
