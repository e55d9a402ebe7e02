import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { insertSession } from "../src/store/sessions.ts";
import { openSqlite } from "../src/store/sqlite.ts";
import { realWorld } from "../src/world.ts";
import { benchSettings, chatKey, instantEngine, oneRun, sessionRow } from "./instant.ts";
import { percentile, sample } from "./measure.ts";

const world = realWorld({ level: "silent" });
const dir = mkdtempSync(join(tmpdir(), "parley-bench-"));
const settings = benchSettings(dir);
const store = await openSqlite({ dir: settings.store.dir, durability: "full", log: world.log });
const engine = await instantEngine({ store, world, settings, maxConcurrent: 64 });
const c0 = { v: process.cpuUsage() };
const N = 2000;
const samples = await sample(N, 200, async (at) => {
  const sessionKey = chatKey(at % 50);
  if (at < 50) await store.transaction((tx) => insertSession(tx, sessionRow(sessionKey, at)));
  if (at === 200) c0.v = process.cpuUsage();
  await oneRun(engine, sessionKey, 10_000);
});
const u = process.cpuUsage(c0.v);
console.log(
  `p50 ${percentile(samples, 0.5).toFixed(2)} p95 ${percentile(samples, 0.95).toFixed(2)} cpu ${((u.user + u.system) / 1000 / N).toFixed(2)} ms/run`,
);
await engine.stop(0);
await store.close();
rmSync(dir, { recursive: true });
const t = performance.now();
let x = 0;
for (let i = 0; i < 3e8; i++) x += i % 7;
console.log("loop", (performance.now() - t).toFixed(0), "ms");
