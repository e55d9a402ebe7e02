// One gateway engine of the cluster benchmark, in its own process: the real engine, flows and agent loop over
// PostgreSQL, with a model that answers at once.

import { sharedWorld } from "../src/engine/cluster/shared-world.ts";
import { openPostgres } from "../src/store/postgres/postgres.ts";
import { getSession, insertSession } from "../src/store/queries/sessions/sessions.ts";
import { realWorld } from "../src/world.ts";
import { benchSettings, chatKey, instantEngine, oneRun, sessionRow } from "./instant.ts";

export type Order =
  /** Executes runs in several sessions, `atOnce` at a time, and reports the duration of each run. */
  | {
      readonly kind: "runs";
      readonly first: number;
      readonly sessions: number;
      readonly runs: number;
      readonly atOnce: number;
    }
  | { readonly kind: "end" };

export interface Answer {
  readonly samplesMs: readonly number[];
}

const MAX_CONCURRENT = 256;
const RUN_MAX_MS = 30_000;

const [url = ""] = process.argv.slice(2);
const settings = benchSettings();
const plain = realWorld({ level: "warn", sync: true });
const store = await openPostgres({ url, world: plain });
const world = sharedWorld(store, plain);
const engine = await instantEngine({ store, world, settings, maxConcurrent: MAX_CONCURRENT });

async function session(at: number): Promise<string> {
  const key = chatKey(at);
  await store.transaction(async (tx) => {
    if ((await getSession(tx, key)) === undefined) await insertSession(tx, sessionRow(key, at));
  });
  return key;
}

async function runs(order: Extract<Order, { kind: "runs" }>): Promise<Answer> {
  const keys: string[] = [];
  for (let at = 0; at < order.sessions; at += 1) keys.push(await session(order.first + at));
  const samplesMs: number[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < order.runs) {
      const at = next++;
      const from = performance.now();
      await oneRun(engine, keys[at % keys.length] ?? "", RUN_MAX_MS);
      samplesMs.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: order.atOnce }, work));
  return { samplesMs };
}

process.on("message", async (order: Order) => {
  if (order.kind === "runs") {
    process.send?.(await runs(order));
    return;
  }
  await engine.stop(0);
  await store.close();
  process.exit(0);
});
process.send?.("ready");
