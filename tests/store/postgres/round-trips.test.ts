// Counts the round trips of one run on PostgreSQL. Each round trip costs one network delay, and a transaction
// holds its locks meanwhile.

import { expect, test } from "vitest";
import { benchSettings, chatKey, instantEngine, oneRun, sessionRow } from "../../../bench/instant.ts";
import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { cleanup, quietWorld } from "../../kit/engine/engine.ts";
import { takeSchema } from "../../kit/store/postgres.ts";
import { countTrips } from "../../kit/store/round-trips.ts";
import { PATIENCE_MS } from "../../kit/until.ts";

const TRIPS = 8;
/** Runs until one is quiet: on a busy machine nearly all have a trip more. */
const RUNS_MAX = 800;

test("a plain run on PostgreSQL costs two transactions with at most eight round trips, and no message to other processes", async () => {
  const { url, give } = await takeSchema();
  cleanup(give);
  const plain = quietWorld();
  const store = await openPostgres({ url, world: plain });
  cleanup(() => store.close());
  const world = sharedWorld(store, plain);
  const engine = await instantEngine({ store, world, settings: benchSettings(), maxConcurrent: 16 });
  cleanup(() => engine.stop(0));
  const key = chatKey(1);
  await store.transaction((tx) => insertSession(tx, sessionRow(key, 1)));
  const counter = countTrips();
  cleanup(counter.stop);
  const runs: { trips: number; commits: number; hints: number }[] = [];
  while (runs.length < RUNS_MAX && !runs.some(({ trips }) => trips <= TRIPS)) {
    counter.take();
    await oneRun(engine, key, PATIENCE_MS);
    const within = counter.take().filter(({ inTransaction }) => inTransaction);
    runs.push({
      trips: within.filter(({ isTrip }) => isTrip).length,
      commits: within.filter(({ text }) => text === "commit").length,
      hints: within.filter(({ text }) => text.includes("pg_notify")).length,
    });
  }
  // The run with the fewest round trips counts, because others may include a heartbeat or the first use of a
  // connection. The first writes of a transaction follow the answer to `begin`. If that answer arrives before
  // the one to the read that was sent together with `begin`, these writes and that read share a round trip,
  // and seven remain.
  const [quietest] = runs.toSorted((a, b) => a.trips - b.trips);
  expect(quietest).toMatchObject({ commits: 2, hints: 0 });
  expect(quietest?.trips).toBeLessThanOrEqual(TRIPS);
});
