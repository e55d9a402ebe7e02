// Benchmarks a cluster: `npm run bench:cluster`. Runs several gateway engines, each in its own process, over
// one PostgreSQL server: a server that is started for the benchmark, or the server of PARLEY_DATABASE_URL,
// where it uses a new schema. No figure makes it fail. The model answers at once, so only the engine, the
// database and the machine determine the figures.

import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { startPostgres } from "../tests/kit/store/postgres-server.ts";
import type { Answer, Order } from "./cluster-worker.ts";
import { machine, type Row, table } from "./measure.ts";

const WORKER = fileURLToPath(new URL("./cluster-worker.ts", import.meta.url));
const SESSIONS = 64;
const WARM_UP = 100;
const RUNS_ALONE = 1_000;
const RUNS_TOGETHER = 3_000;
const AT_ONCE = 32;

interface Worker {
  ask(order: Order): Promise<Answer>;
  end(): Promise<void>;
}

async function startWorker(url: string): Promise<Worker> {
  const child: ChildProcess = fork(WORKER, [url], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  await once(child, "message");
  return {
    async ask(order) {
      child.send(order);
      const [answer] = (await once(child, "message")) as [Answer];
      return answer;
    },
    async end() {
      const ended = once(child, "exit");
      child.send({ kind: "end" } satisfies Order);
      await ended;
    },
  };
}

/** Returns the runs per second of all these processes together. Each process uses its own sessions. */
async function throughput(workers: readonly Worker[]): Promise<number> {
  const runs = Math.floor(RUNS_TOGETHER / workers.length);
  const from = performance.now();
  await Promise.all(
    workers.map((worker, at) =>
      worker.ask({ kind: "runs", first: at * SESSIONS, sessions: SESSIONS, runs, atOnce: AT_ONCE }),
    ),
  );
  return (runs * workers.length) / ((performance.now() - from) / 1_000);
}

async function measure(url: string): Promise<{ rows: Row[]; rates: string[] }> {
  const workers = [await startWorker(url), await startWorker(url), await startWorker(url)];
  const [first] = workers;
  if (first === undefined) throw new Error("no worker");
  const one = { kind: "runs", first: 0, sessions: 50, atOnce: 1 } as const;
  await first.ask({ ...one, runs: WARM_UP });
  const alone = await first.ask({ ...one, runs: RUNS_ALONE });
  const rates: string[] = [];
  await throughput(workers);
  for (const count of [1, 2, 3]) {
    const rate = await throughput(workers.slice(0, count));
    rates.push(`${count} process${count > 1 ? "es" : ""}: ${rate.toFixed(0)} runs/s`);
  }
  for (const worker of workers) await worker.end();
  const size = "50 sessions in turn, 3 processes up";
  return {
    rows: [{ name: "run overhead, cluster", size, unit: "ms", samples: alone.samplesMs, target: "< 6" }],
    rates,
  };
}

const given = process.env.PARLEY_DATABASE_URL;
const server = given === undefined ? await startPostgres(["-c", "fsync=on"]) : undefined;
try {
  const url = new URL(given ?? server?.url ?? "");
  url.searchParams.set("schema", `bench_${randomUUID().replaceAll("-", "")}`);
  const { rows, rates } = await measure(url.href);
  console.log(`${machine()}; store: PostgreSQL, fsync on\n\n${table(rows)}`);
  console.log(`\nRuns a second, ${AT_ONCE} at once in each process:\n${rates.join("\n")}`);
} finally {
  await server?.end();
}
