// A lock in a PostgreSQL store. A move to that store stops halfway at this lock.

import pg from "pg";
import { cleanup } from "../engine/engine.ts";
import { openPostgresStore } from "./postgres.ts";

const GATE = 7_275_001;
/** After this number of queries the test fails, because no connection waits for the lock. */
const ASKED_MAX = 20_000;

/** Blocks writes to the table that a move copies last, until it is opened. */
export interface Gate {
  /** Resolves with the process id, on the server, of a connection that waits for the lock. */
  reached(): Promise<number>;
  open(): Promise<void>;
}

/** Creates the store at this address if it is missing, and locks the store's last table. */
export async function gateIn(url: string): Promise<Gate> {
  const made = await openPostgresStore({ url });
  await made.store.close();
  const schema = new URL(url).searchParams.get("schema");
  const key = `${GATE}, hashtext('${schema}')`;
  const keeper = new pg.Client({ connectionString: url.replace(/\?.*/, "") });
  await keeper.connect();
  await keeper.query(`select pg_advisory_lock(${key});
    create function "${schema}".stand() returns trigger language plpgsql as $$ begin
      perform pg_advisory_xact_lock(${key}); return new; end $$;
    create trigger stand before insert on "${schema}".idempotency
      for each row execute function "${schema}".stand()`);
  let isOpen = false;
  const open = async (): Promise<void> => {
    if (isOpen) return;
    isOpen = true;
    await keeper.end();
  };
  cleanup(open);
  const waiting = `select pid from pg_locks where locktype = 'advisory' and not granted
    and objid::int8 = hashtext('${schema}')::int8 & 4294967295`;
  return {
    open,
    async reached() {
      for (let asked = 0; asked < ASKED_MAX; asked += 1) {
        const [row] = (await keeper.query(waiting)).rows;
        if (row !== undefined) return Number(row.pid);
      }
      throw new Error("nobody came to the gate");
    },
  };
}
