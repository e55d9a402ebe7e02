// Counts the statements and round trips of one run on PostgreSQL: `npm run bench:trips`; with
// `-- --statements` it lists them.

import { randomUUID } from "node:crypto";
import { sharedWorld } from "../src/engine/cluster/shared-world.ts";
import { openPostgres } from "../src/store/postgres/postgres.ts";
import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { realWorld } from "../src/world.ts";
import { startPostgres } from "../tests/kit/store/postgres-server.ts";
import { countTrips, type Sent } from "../tests/kit/store/round-trips.ts";
import { benchSettings, chatKey, instantEngine, oneRun, sessionRow } from "./instant.ts";

const SESSIONS = 20;
const RUN_MAX_MS = 30_000;
/** Wait after each run, because the run's hints to other processes are sent shortly after its end. */
const QUIET_MS = 60;

const quiet = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, QUIET_MS));

/**
 * Returns the statements of the run with the fewest statements. The other runs include periodic statements
 * such as heartbeats.
 */
async function quietest(url: string): Promise<readonly Sent[]> {
  const plain = realWorld({ level: "warn", sync: true });
  const store = await openPostgres({ url, world: plain });
  const world = sharedWorld(store, plain);
  const engine = await instantEngine({ store, world, settings: benchSettings(), maxConcurrent: 16 });
  const keys = Array.from({ length: SESSIONS }, (_, at) => chatKey(at));
  for (const [at, key] of keys.entries()) {
    await store.transaction((tx) => insertSession(tx, sessionRow(key, at)));
    await oneRun(engine, key, RUN_MAX_MS);
  }
  const counter = countTrips();
  const runs: Sent[][] = [];
  for (const key of keys) {
    await quiet();
    counter.take();
    await oneRun(engine, key, RUN_MAX_MS);
    await quiet();
    runs.push(counter.take());
  }
  counter.stop();
  await engine.stop(0);
  await store.close();
  return runs.reduce((best, run) => (run.length < best.length ? run : best));
}

const server = await startPostgres(["-c", "fsync=on"]);
try {
  const url = new URL(server.url);
  url.searchParams.set("schema", `trips_${randomUUID().replaceAll("-", "")}`);
  const run = await quietest(url.href);
  const count = (fits: (one: Sent) => boolean): number => run.filter(fits).length;
  const trips = count(({ isTrip }) => isTrip);
  const within = count(({ isTrip, inTransaction }) => isTrip && inTransaction);
  const commits = count(({ text }) => text === "commit");
  console.log(
    `${run.length} statements in ${trips} round trips, ${within} of them in ${commits} transactions`,
  );
  if (process.argv.includes("--statements")) {
    for (const { text, isTrip } of run)
      console.log(`${isTrip ? "->" : " +"} ${text.replaceAll(/\s+/g, " ")}`);
  }
} finally {
  await server.end();
}
