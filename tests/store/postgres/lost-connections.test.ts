// Loses the connection at each message of a transaction in turn, in every way.

import { expect, test } from "vitest";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { StoreConflict, StoreProblem } from "../../../src/store/problems.ts";
import type { Store, Tx } from "../../../src/store/sql.ts";
import { together } from "../../../src/store/transaction.ts";
import { noteEscapes } from "../../kit/process/escapes.ts";
import { openPostgresStore } from "../../kit/store/postgres.ts";
import { fakeWorld } from "../../kit/world.ts";
import { CUTS, openTcpProxy } from "./tcp-proxy.ts";

const put = (tx: Tx, id: string) => tx.insertInto("chains").values({ chain_id: id, runs: 1 }).execute();
const look = (tx: Tx) => tx.selectFrom("chains").select("chain_id").execute();

/** Sends statements one by one and together, before and after the server has confirmed `begin`. */
const work = (store: Store, name: string): Promise<unknown> =>
  store.transaction(async (tx) => {
    await together(look(tx), put(tx, `${name} a`), together(look(tx), put(tx, `${name} b`)));
    await look(tx);
    await put(tx, `${name} c`);
    await together(put(tx, `${name} d`), look(tx));
  });

test.each(Object.entries(CUTS))(
  "no failure escapes if the connection is lost %s: the transaction fails whole, and the next one commits",
  async (_way, cut) => {
    const escapes = noteEscapes();
    const direct = await openPostgresStore();
    const { port } = new URL(direct.url);
    const tap = await openTcpProxy(Number(port));
    const url = direct.url.replace(`:${port}/`, `:${tap.port}/`);
    const store = await openPostgres({ url, world: fakeWorld({ clock: "real" }) });
    // The first transaction also connects.
    await work(store, "first");
    let at = 0;
    for (let isCut = true; isCut; ) {
      at += 1;
      let left = at;
      isCut = false;
      cut(tap, () => {
        left -= 1;
        isCut ||= left === 0;
        return left === 0;
      });
      const failure = await work(store, `cut ${at}`).catch((error: unknown) => error);
      left = 0;
      if (failure !== undefined)
        expect(failure instanceof StoreProblem || failure instanceof StoreConflict, String(failure)).toBe(
          true,
        );
      await work(store, `after ${at}`);
    }
    expect(at).toBeGreaterThan(4);
    const rows = await direct.store.db.selectFrom("chains").select("chain_id").execute();
    const named = Map.groupBy(rows, (row) => row.chain_id.slice(0, -2));
    for (const [name, parts] of named) expect(parts, name).toHaveLength(4);
    expect([...named.keys()].filter((name) => name.startsWith("after"))).toHaveLength(at);
    await store.close();
    await tap.close();
    await direct.dispose();
    expect(await escapes.end()).toEqual([]);
  },
);
