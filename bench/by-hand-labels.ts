// Measures what labels cost a tool call on the embedded store, in ms (p50): `node bench/by-hand-labels.ts`.

import { labelFrom } from "../src/core/rules/labels/labels.ts";
import type { Labels } from "../src/core/shapes/labels.ts";
import { addLabels, readLabels } from "../src/store/queries/labels.ts";
import { labelRules } from "../src/store/queries/permission-rules.ts";
import { readBeforeCalls } from "../src/store/queries/runs/holds.ts";
import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { openSqlite } from "../src/store/sqlite/sqlite.ts";
import { realWorld } from "../src/world.ts";
import { inFolder } from "./in-folder.ts";
import { benchSettings, chatKey, instantEngine, oneRun, sessionRow } from "./instant.ts";

const ROUNDS = 2_000;
const SOURCES = 20;
const WAIT_MS = 10_000;
const [PLAIN, MARKED] = [chatKey(1), chatKey(2)];

async function measure(name: string, work: (round: number) => Promise<unknown>): Promise<void> {
  const samples: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = performance.now();
    await work(round);
    samples.push(performance.now() - from);
  }
  samples.sort((a, b) => a - b);
  console.log(`${(samples[ROUNDS / 2] ?? 0).toFixed(4)}  ${name}`);
}

await inFolder(async (dir) => {
  const world = realWorld();
  const store = await openSqlite({ dir, durability: "full", log: world.log });
  const { db } = store;
  const engine = await instantEngine({ store, world, settings: benchSettings(), maxConcurrent: 4 });
  const runs: string[] = [];
  for (const [at, key] of [PLAIN, MARKED].entries()) {
    await store.transaction((tx) => insertSession(tx, sessionRow(key, at)));
    await oneRun(engine, key, WAIT_MS);
    const run = await db
      .selectFrom("runs")
      .select(["run_id", "chain_id", "session_id"])
      .where("session_key", "=", key)
      .executeTakeFirstOrThrow();
    runs.push(run.run_id);
    if (key === PLAIN) continue;
    const place = { key, sessionId: run.session_id, chainId: run.chain_id };
    const add = (labels: Labels) => store.transaction((tx) => addLabels(tx, place, labels, { at: 0 }));
    for (let source = 0; source < SOURCES; source += 1) await add(labelFrom("outside", `web ${source}`, 0));
    await measure("the labels of a run with labels, before a sink", () => readLabels(db, place));
    const rule = { agentId: "main", sessionKey: key, ofAgent: true, chainId: run.chain_id };
    await measure("the rules of owners, before a sink", () => labelRules(db, rule));
    await measure("a transaction that writes one row", (round) =>
      store.transaction((tx) => tx.updateTable("chains").set({ last_at: round }).execute()),
    );
    await measure("a transaction that adds the labels of a text", (round) =>
      add(labelFrom("private", `file ${round % SOURCES}`, 0)),
    );
  }
  for (const [at, run] of runs.entries())
    await measure(`what a run ${at === 0 ? "without" : "with"} labels knows before its calls`, () =>
      readBeforeCalls(db, run),
    );
  await engine.stop(0);
  await store.close();
});
