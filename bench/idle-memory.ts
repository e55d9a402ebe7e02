// Benchmarks the resident memory of a gateway after many runs and after a minute of idleness, also with a
// million idle sessions in the store, and while a thousand clients are subscribed. The gateway runs as `npm
// start` starts it, without forced garbage collections. `node bench/idle-memory.ts [SESSIONS…]` runs only
// this part, with this many idle sessions.

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { GatewayClient } from "../src/contract/client/node.ts";
import { memoryOf } from "../tests/kit/load/memory.ts";
import { TOKEN } from "../tests/kit/process/fleet.ts";
import { Filling } from "./filling.ts";
import { type Ground, onGround } from "./ground.ts";
import { type Row, sizeText, table } from "./measure.ts";
import { runsAtOnce } from "./runs.ts";
import { watcher } from "./watcher.ts";

const WRITERS = 16;
const RUNS = 20_000;
const IDLE_MS = 60_000;
const IDLE_SESSIONS = [0, 1_000_000] as const;
const STORE_DIR = [".parley", "state"] as const;

const CROWD = fileURLToPath(new URL("./crowd.ts", import.meta.url));
const CLIENTS = 1_000;
const WATCHED_RUNS = 300;
/** Requests an answer of 40 KB. */
const LONG_ANSWER = "stream 4000 0";
const LOOK_MS = 100;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const residentMb = ({ pid }: Ground): number => memoryOf(pid)?.rss ?? Number.NaN;

async function writersOf(ground: Ground): Promise<GatewayClient[]> {
  const clients: GatewayClient[] = [];
  while (clients.length < WRITERS) clients.push(await ground.of(clients.length));
  return clients;
}

/** Fills the store while the gateway is stopped. Returns the time of the next start. */
async function filledStart(ground: Ground, sessions: number): Promise<number> {
  await ground.stop();
  const filling = new Filling(join(ground.home, ...STORE_DIR), Date.now());
  filling.sessions(0, sessions);
  filling.settle();
  filling.close();
  const from = performance.now();
  await ground.start();
  await fetch(`${ground.url}/readyz`);
  return performance.now() - from;
}

async function afterRuns(sessions: number): Promise<Row[]> {
  return onGround({ sessions: WRITERS }, async (ground) => {
    const startMs = await filledStart(ground, sessions);
    const admin = await ground.all();
    const clients = await writersOf(ground);
    const idle = residentMb(ground);
    const { perSecond } = await runsAtOnce(clients, RUNS, admin);
    const after = residentMb(ground);
    await pause(IDLE_MS);
    const later = residentMb(ground);
    for (const client of [...clients, admin]) client.close();
    const size = `${sizeText(sessions, "idle sessions")} in the store`;
    const runs = `${RUNS} runs at ${WRITERS} sessions`;
    return [
      { name: "start to /readyz", size, unit: "ms", samples: [startMs] },
      { name: "RSS after the start, with clients", size, unit: "MB", samples: [idle] },
      { name: `runs a second: ${runs}`, size, unit: "/s", samples: [perSecond] },
      { name: `RSS right after ${runs}`, size, unit: "MB", samples: [after], target: "< 250" },
      { name: "RSS a minute later, idle", size, unit: "MB", samples: [later], target: "< 120" },
    ] satisfies Row[];
  });
}

/** Reads the memory until `work` is done, and returns the maximum. */
async function peakDuring(ground: Ground, work: () => Promise<unknown>): Promise<number> {
  let peak = residentMb(ground);
  const timer = setInterval(() => {
    peak = Math.max(peak, residentMb(ground));
  }, LOOK_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return Math.max(peak, residentMb(ground));
}

/** Measures the peak memory during runs while a crowd of clients is subscribed to everything. */
async function watched(): Promise<Row[]> {
  return onGround({ sessions: WRITERS }, async (ground) => {
    const crowd = fork(CROWD, [ground.url.replace("http", "ws"), TOKEN, String(CLIENTS)]);
    try {
      await once(crowd, "message");
      const admin = await ground.all();
      const clients = await writersOf(ground);
      const peak = await peakDuring(ground, () => runsAtOnce(clients, WATCHED_RUNS, admin));
      const row: Row = {
        name: "peak RSS during runs",
        size: `${CLIENTS} subscribed clients`,
        ...{ unit: "MB", samples: [peak], target: "< 250" },
      };
      for (const client of [...clients, admin]) client.close();
      return [row];
    } finally {
      crowd.disconnect();
    }
  });
}

async function unread(): Promise<Row[]> {
  return onGround({ sessions: WRITERS }, async (ground) => {
    const { leave, stopReading } = await watcher(ground.url, []);
    stopReading();
    const admin = await ground.all();
    const clients = await writersOf(ground);
    const peak = await peakDuring(ground, () => runsAtOnce(clients, WATCHED_RUNS, admin, LONG_ANSWER));
    for (const client of [...clients, admin]) client.close();
    leave();
    const size = "one client that never reads";
    return [{ name: "peak RSS during runs", size, unit: "MB", samples: [peak], target: "< 250" }];
  });
}

export async function idleMemory(sizes: readonly number[] = IDLE_SESSIONS): Promise<Row[]> {
  const rows: Row[] = [];
  for (const sessions of sizes) rows.push(...(await afterRuns(sessions)));
  return [...rows, ...(await watched()), ...(await unread())];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const sizes = process.argv.slice(2).map(Number);
  console.log(table(await idleMemory(sizes.length === 0 ? undefined : sizes)));
}
