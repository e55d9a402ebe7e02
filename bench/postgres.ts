// Benchmarks the store on PostgreSQL: `node bench/postgres.ts`. Starts a server on this machine, measures it
// with and without synchronous commits, and compares it with the embedded store.

import { sql } from "kysely";
import { openPostgres } from "../src/store/postgres/postgres.ts";
import { insertSession } from "../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../src/store/queries/transcripts/append.ts";
import type { Store } from "../src/store/sql.ts";
import { openSqlite } from "../src/store/sqlite/sqlite.ts";
import { plainRedactor } from "../tests/kit/redactor.ts";
import { startPostgres } from "../tests/kit/store/postgres-server.ts";
import { sampleSession, userMessage } from "../tests/store/samples.ts";
import { world } from "./engine-alone.ts";
import { inFolder } from "./in-folder.ts";
import { machine, type Row, sample, table } from "./measure.ts";

const TIMES = 2_000;
const WARM_UP = 300;
const SIDE_BY_SIDE = 20;
const WORDS = "the gateway keeps what it was told and says so before anybody else has to ask for it again";

async function rowsOf(store: Store, size: string): Promise<Row[]> {
  const key = "agent:main:main";
  await store.transaction((tx) => insertSession(tx, sampleSession({ key })));
  let messages = 0;
  const append = (): Promise<unknown> => {
    messages += 1;
    const entry = userMessage(`m${messages}`, `${messages} ${WORDS}`);
    return store.transaction((tx) =>
      appendEntry(tx, { sessionKey: key, sessionId: "session-1", entry }, plainRedactor),
    );
  };
  const works: Record<string, () => Promise<unknown>> = {
    "one statement": () => sql`select 1 as one`.execute(store.db),
    "a row by its key": () => store.db.selectFrom("sessions").selectAll().where("key", "=", key).execute(),
    "an empty transaction": () => store.transaction(async () => {}),
    "a message and its index": append,
    [`${SIDE_BY_SIDE} messages side by side`]: () =>
      Promise.all(Array.from({ length: SIDE_BY_SIDE }, append)),
  };
  const rows: Row[] = [];
  for (const [name, work] of Object.entries(works)) {
    rows.push({ name, size, unit: "ms", samples: await sample(TIMES, WARM_UP, work) });
  }
  return rows;
}

async function onPostgres(fsync: "on" | "off"): Promise<Row[]> {
  const server = await startPostgres(["-c", `fsync=${fsync}`]);
  try {
    const store = await openPostgres({ url: server.url, world });
    const rows = await rowsOf(store, `PostgreSQL, fsync ${fsync}`);
    await store.close();
    return rows;
  } finally {
    await server.end();
  }
}

async function embedded(): Promise<Row[]> {
  return inFolder(async (dir) => {
    const store = await openSqlite({ dir, durability: "full", log: world.log });
    const rows = await rowsOf(store, "embedded");
    await store.close();
    return rows;
  });
}

const rows = [...(await onPostgres("on")), ...(await onPostgres("off")), ...(await embedded())];
console.log(`${machine()}\n\n${table(rows)}`);
