// One gateway engine of the cluster benchmark, in a process of its own: the real engine, flows and agent
// loop over PostgreSQL, with a model that answers at once.

import { fail, ok } from "../src/core/errors.ts";
import { Engine } from "../src/engine/engine.ts";
import { sharedWorld } from "../src/engine/shared-world.ts";
import { createExecutor } from "../src/execute.ts";
import { ensureMainSessions } from "../src/flows/lifecycle.ts";
import { createSuccessors } from "../src/flows/successors.ts";
import { openPostgres } from "../src/store/postgres.ts";
import { getSession, insertSession } from "../src/store/sessions.ts";
import { realWorld } from "../src/world.ts";
import { benchSettings, instantModel, sessionRow } from "./instant.ts";

export type Order =
  /** Does runs in some sessions, so many at once, and tells how long each took from call to end. */
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

const [url = ""] = process.argv.slice(2);
const settings = benchSettings();
const plain = realWorld({ level: "warn", sync: true });
const store = await openPostgres({ url, world: plain });
const world = sharedWorld(store, plain);
const engine: Engine = new Engine({
  store,
  world,
  settings: {
    ...settings.session,
    ...settings.session.agentToAgent,
    maxConcurrent: MAX_CONCURRENT,
  },
  successors: createSuccessors({
    settings,
    transcriptPath: () => undefined,
    outbound: { deliveryQueued: () => {} },
  }),
  executor: createExecutor({
    settings,
    store,
    world,
    port: instantModel(world),
    sandboxFor: async () => ok(undefined),
    engine: () => engine,
  }),
});
await ensureMainSessions({ engine, settings });
await engine.start();

async function session(at: number): Promise<string> {
  const key = `agent:main:chat:${String(at).padStart(8, "0")}-0000-4000-8000-000000000000`;
  await store.transaction(async (tx) => {
    if ((await getSession(tx, key)) === undefined) await insertSession(tx, sessionRow(key, at));
  });
  return key;
}

async function oneRun(sessionKey: string): Promise<number> {
  const from = performance.now();
  const accepted = await engine.accept({ sessionKey, input: { text: "hello" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const run = await engine.waitForRun(accepted.value.run.runId, engine.now() + 30_000);
  if (run?.state !== "ok") throw new Error(fail("run_failed", `${run?.state}: ${run?.error}`).error);
  return performance.now() - from;
}

async function runs(order: Extract<Order, { kind: "runs" }>): Promise<Answer> {
  const keys: string[] = [];
  for (let at = 0; at < order.sessions; at += 1) keys.push(await session(order.first + at));
  const samplesMs: number[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < order.runs) {
      const at = next++;
      samplesMs.push(await oneRun(keys[at % keys.length] ?? ""));
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
