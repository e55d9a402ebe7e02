// Benchmarks a deployment in which 100,000 lanes wait for a slot, on both databases: the queries of a sweep,
// and the time from the begin of one run to the begin of the next.

import { sql } from "kysely";
import { sharedWorld } from "../src/engine/cluster/shared-world.ts";
import { Engine } from "../src/engine/engine.ts";
import { createSuccessors } from "../src/flows/successors.ts";
import { openPostgres } from "../src/store/postgres/postgres.ts";
import { storedKinds } from "../src/store/queries/deadlines.ts";
import { hasOrphans, heldBy, readyHeads } from "../src/store/queries/runs/claims.ts";
import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import type { Store } from "../src/store/sql.ts";
import { openSqlite } from "../src/store/sqlite/sqlite.ts";
import { startPostgres } from "../tests/kit/store/postgres-server.ts";
import { world } from "./engine-alone.ts";
import { inFolder } from "./in-folder.ts";
import { benchSettings, chatKey, sessionRow } from "./instant.ts";
import { type Row, sample, sizeText } from "./measure.ts";

const LANES = 100_000;
const AGENTS = 50;
const TIMES = 50;
const WARM_UP = 5;

/** Copies the first session and its queued run into as many lanes. */
async function fill(store: Store): Promise<void> {
  const numbers = sql`(with recursive t (n) as (select 1 union all select n + 1 from t where n < ${LANES})
    select n from t)`;
  const copies = async (table: "sessions" | "runs", changed: Readonly<Record<string, string>>) => {
    const row = await store.db.selectFrom(table).selectAll().limit(1).executeTakeFirstOrThrow();
    const names = Object.keys(row).filter((name) => !["archived", "row_id", "seq"].includes(name));
    const values = names.map((name) => sql.raw(changed[name] ?? `one.${name}`));
    const columns = sql.join(names.map((name) => sql.ref(name)));
    const first = sql`(select * from ${sql.table(table)} limit 1) as one`;
    const copy = sql`insert into ${sql.table(table)} (${columns})
      select ${sql.join(values)} from ${first}, ${numbers} as t`;
    await store.transaction((tx) => copy.execute(tx));
  };
  await copies("sessions", { key: "'lane ' || n", session_id: "'s' || n", label: "null" });
  const queue = `'1a' || (n % ${AGENTS})`;
  await copies("runs", { run_id: "'r' || n", session_key: "'lane ' || n", session_id: "'s' || n", queue });
}

async function rowsOf(store: Store, name: string): Promise<Row[]> {
  const own = sharedWorld(store, world);
  const settings = benchSettings();
  const begins: number[] = [];
  const over = Promise.withResolvers<void>();
  const engine = new Engine({
    ...{
      store,
      world: own,
      settings: { ...settings.session, ...settings.session.agentToAgent, maxConcurrent: 1 },
    },
    successors: createSuccessors({ settings, transcriptPath: () => undefined }),
    executor: {
      async execute() {
        if (begins.push(performance.now()) === WARM_UP + TIMES) over.resolve();
        return { state: "ok", reply: "done" };
      },
    },
  });
  const session = sessionRow(chatKey(0), 0);
  await store.transaction((tx) => insertSession(tx, session));
  await engine.commit((unit) => engine.acceptIn(unit, { sessionKey: session.key, input: { text: "hello" } }));
  await fill(store);
  const lanes = { busy: [], passed: [] };
  const sweeps = await sample(TIMES, WARM_UP, async () => {
    await hasOrphans(store.db);
    await heldBy(store.db, engine.processId);
    await readyHeads(store.db, lanes);
    await storedKinds(store.db, own.clock.now());
  });
  await engine.start();
  await over.promise;
  await engine.stop(0);
  const size = `${sizeText(LANES, "queued lanes")}, ${name}`;
  const ends = begins.slice(WARM_UP + 1).map((at, index) => at - (begins[WARM_UP + index] ?? 0));
  return [
    { name: "sweep: all its queries", size, unit: "ms", samples: sweeps, target: "max < 100" },
    { name: "a run, until the next lane begins", size, unit: "ms", samples: ends, target: "< 100" },
  ];
}

export async function queuedLanes(): Promise<Row[]> {
  const embedded = await inFolder(async (dir) => {
    const store = await openSqlite({ dir, durability: "full", log: world.log, clock: world.clock });
    return rowsOf(store, "embedded store").finally(() => store.close());
  });
  const server = await startPostgres();
  try {
    const store = await openPostgres({ url: server.url, world });
    return [...embedded, ...(await rowsOf(store, "PostgreSQL").finally(() => store.close()))];
  } finally {
    await server.end();
  }
}
