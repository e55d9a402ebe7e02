// Moves whole stores with all their contents: to PostgreSQL, to a backup file, and back.

import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { expect } from "vitest";
import { added } from "../../../src/features.ts";
import { BULK_TIMEOUTS, beginBulkRead, beginBulkWrite } from "../../../src/store/postgres/bulk.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { Table } from "../../../src/store/schema/definition.ts";
import type { Store, Tx } from "../../../src/store/sql.ts";
import { STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { copyRows } from "../../../src/store/transfer/copy.ts";
import { backupStore, migrateStore, restoreStore } from "../../../src/store/transfer/transfer.ts";
import { both, share, test } from "../../kit/deep.ts";
import { dice } from "../../kit/dice.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { runSql } from "../../kit/store/postgres.ts";
import { fillStore, foundIn, QUESTIONS, rowsOf } from "../full-store.ts";
import { userMessage } from "../samples.ts";
import {
  AS_BEFORE,
  freshUrl,
  good,
  inEmbedded,
  inPostgres,
  jobOn,
  saySomething,
  schemaOf,
  smallStore,
} from "./moves.ts";

/** Rows of a backup that would give rights which nobody has seen. */
const OF_FEATURES = Object.entries<Table>(added("tables")).filter(([, { rules }]) => rules.isUnseen);
const NEVER_RESTORED = { permissions: [], ...Object.fromEntries(OF_FEATURES.map(([name]) => [name, []])) };
const SEED = process.env.PARLEY_SEED ?? `${Date.now()}`;

test(`every row is moved unchanged and in order, there and back, and searches find the same messages (PARLEY_SEED=${SEED})`, async () => {
  const from = temporaryFolder();
  const { own, onServer, found } = await inEmbedded(from, async (store) => {
    await fillStore(store, dice(SEED));
    return {
      own: await rowsOf(store.db, { onServer: false }),
      onServer: await rowsOf(store.db, { onServer: true }),
      found: await foundIn(store.db),
    };
  });
  for (const query of QUESTIONS) expect({ query, hits: found[`${query} `] }).not.toEqual({ query, hits: [] });
  const before = readFileSync(join(from, STORE_FILE));
  const tally = { sessions: 63, runs: 60 };

  const url = await freshUrl();
  expect(good(await migrateStore(jobOn(from), url))).toMatchObject({ from, tally });
  const [ofEmbedded, ofPostgres] = [join(temporaryFolder(), "a.sqlite"), join(temporaryFolder(), "b.sqlite")];
  expect(good(await backupStore(jobOn(from), ofEmbedded))).toMatchObject({ from, to: ofEmbedded, tally });
  expect(good(await backupStore(jobOn({ url }), ofPostgres))).toMatchObject({ to: ofPostgres, tally });
  expect(readFileSync(join(from, STORE_FILE)).equals(before)).toBe(true);

  const [fromBackup, fromOther] = [temporaryFolder(), temporaryFolder()];
  good(await restoreStore(jobOn(fromBackup), ofEmbedded));
  good(await restoreStore(jobOn(fromOther), ofPostgres));
  const again = await freshUrl();
  good(await restoreStore(jobOn({ url: again }), ofEmbedded));

  await inEmbedded(fromBackup, async (store) => {
    expect(await rowsOf(store.db, { onServer: false })).toEqual({ ...own, ...NEVER_RESTORED });
    expect(await foundIn(store.db)).toEqual(found);
  });
  await inEmbedded(fromOther, async (store) => {
    expect(await rowsOf(store.db, { onServer: false })).toEqual({ ...onServer, ...NEVER_RESTORED });
    expect(await foundIn(store.db)).toEqual(found);
  });
  for (const [place, missing] of [
    [url, {}],
    [again, NEVER_RESTORED],
  ] as const) {
    await inPostgres(place, async (store) => {
      expect(await rowsOf(store.db, { onServer: true })).toEqual({ ...onServer, ...missing });
      expect(await foundIn(store.db)).toEqual(found);
    });
  }
});

test("at most one page is in memory at a time, limited by rows and by bytes", async () => {
  const dir = temporaryFolder();
  const pages: number[] = [];
  await inEmbedded(dir, async (store) => {
    await store.transaction(async (tx) => {
      for (let number = 0; number < 700; number += 1) {
        await tx
          .insertInto("chains")
          .values({ chain_id: `c${number}`, runs: 1 })
          .execute();
      }
      for (let number = 0; number < 9; number += 1) {
        const entry = userMessage(`m${number}`, number === 4 ? "x".repeat(9_000_000) : "y".repeat(1_500_000));
        await appendEntry(tx, { sessionKey: "k", sessionId: "s", entry }, plainRedactor);
      }
    });
    const target = temporaryFolder();
    let last = 0;
    const copied = (rows: number): void => {
      pages.push(rows - last);
      last = rows;
    };
    await inEmbedded(target, async (other) => {
      const watch = { signal: new AbortController().signal, redactor: plainRedactor, copied };
      await other.transaction((tx) => copyRows(store.db, tx, watch));
      expect(await rowsOf(other.db, { onServer: false })).toEqual(
        await rowsOf(store.db, { onServer: false }),
      );
    });
  });
  // The first pages contain messages of 1.5 MB, the fifth of 9 MB, in pages of at most 4 MiB. The others
  // contain 700 chains, in pages of at most 256 rows.
  expect(pages).toEqual([2, 2, 1, 2, 2, 256, 256, 188]);
});

/** Commits a message together with its number, repeatedly until it is stopped. */
function writer(store: Store): { written(): number; stop(): Promise<number> } {
  let [number, stopped] = [0, false];
  const work = (async () => {
    while (!stopped) {
      await store.transaction(async (tx) => {
        const entry = userMessage(`w${number}`, "word ".repeat(200));
        await appendEntry(tx, { sessionKey: "k", sessionId: "s", entry }, plainRedactor);
        await tx.deleteFrom("chains").execute();
        await tx
          .insertInto("chains")
          .values({ chain_id: "count", runs: number + 1 })
          .execute();
      });
      number += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return number;
  })();
  return {
    written: () => number,
    stop: () => {
      stopped = true;
      return work;
    },
  };
}

both.each(share(["embedded"], ["postgres"]))(
  "a backup of a store during writes contains the state at one moment: %s",
  async (kind) => {
    const dir = temporaryFolder();
    const url = await freshUrl();
    const file = join(temporaryFolder(), "backup.sqlite");
    await (kind === "embedded" ? inEmbedded : inPostgres)(kind === "embedded" ? dir : url, async (store) => {
      // Large enough that many writes happen during the copy.
      await store.transaction(async (tx) => {
        for (let number = 0; number < 20; number += 1) {
          const entry = userMessage(`big${number}`, "x".repeat(1_000_000));
          await appendEntry(tx, { sessionKey: "k", sessionId: "other", entry }, plainRedactor);
        }
      });
      const writing = writer(store);
      const before = writing.written();
      good(await backupStore(kind === "embedded" ? jobOn(dir) : jobOn({ url }), file));
      expect(writing.written()).toBeGreaterThan(before + 1);
      await writing.stop();
    });
    const to = temporaryFolder();
    good(await restoreStore(jobOn(to), file));
    await inEmbedded(to, async ({ db }) => {
      const counted = await db.selectFrom("chains").selectAll().executeTakeFirst();
      const messages = await db.selectFrom("messages").select("id").where("session_id", "=", "s").execute();
      expect(messages.map(({ id }) => id)).toEqual(
        Array.from({ length: counted?.runs ?? 0 }, (_, n) => `w${n}`),
      );
    });
  },
);

test("a file of the version before is moved in the current format, and the file itself is not changed", async () => {
  const dir = await smallStore();
  const file = join(dir, STORE_FILE);
  const old = new DatabaseSync(file);
  old.exec(`${AS_BEFORE} pragma journal_mode = delete`);
  old.close();
  const before = readFileSync(file);
  const url = await freshUrl();
  good(await migrateStore(jobOn(dir), url));
  await inPostgres(url, async (store) => {
    expect(Object.values(await foundIn(store.db)).flat()).toEqual([]);
    expect(await store.db.selectFrom("messages").select("id").execute()).toEqual([{ id: "m1" }]);
  });
  const backup = join(temporaryFolder(), "old.sqlite");
  good(await backupStore(jobOn(dir), backup));
  const again = temporaryFolder();
  good(await restoreStore(jobOn({ url: await freshUrl() }), backup));
  good(await restoreStore(jobOn(again), backup));
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(dir).sort()).toEqual(["gateway.lock", STORE_FILE, `${STORE_FILE}-mark`]);
  await inEmbedded(again, async (store) => {
    expect(await store.db.selectFrom("messages").select("id").execute()).toEqual([{ id: "m1" }]);
  });
});

test("the write-ahead log of a killed process is moved, too", async () => {
  const [dir, killed] = [temporaryFolder(), temporaryFolder()];
  await inEmbedded(dir, async (store) => {
    await saySomething(store);
    for (const ending of ["", "-wal"])
      copyFileSync(join(dir, STORE_FILE + ending), join(killed, STORE_FILE + ending));
  });
  expect(statSync(join(killed, `${STORE_FILE}-wal`)).size).toBeGreaterThan(0);
  expect(good(await migrateStore(jobOn(killed), await freshUrl())).tally.messages).toBe(1);
  const to = temporaryFolder();
  expect(good(await restoreStore(jobOn(to), join(killed, STORE_FILE))).tally.messages).toBe(1);
});

test("a backup is one file, and only its owner can read it and the store that is restored from it", async () => {
  const dir = await smallStore();
  const folder = temporaryFolder();
  const file = join(folder, "new", "folder", "backup.sqlite");
  const { bytes } = good(await backupStore(jobOn(dir), file));
  expect(readdirSync(join(folder, "new", "folder"))).toEqual(["backup.sqlite"]);
  expect(statSync(file)).toMatchObject({ size: bytes });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const to = join(folder, "state");
  good(await restoreStore(jobOn(to), file));
  expect(readdirSync(to).sort()).toEqual(["gateway.lock", STORE_FILE]);
  expect(statSync(join(to, STORE_FILE)).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(folder, "new", "folder"))).toEqual(["backup.sqlite"]);
});

test("after a restore, the next start checks every JSONL copy", async () => {
  const file = join(temporaryFolder(), "backup.sqlite");
  good(await backupStore(jobOn(await smallStore()), file));
  const dir = temporaryFolder();
  good(await restoreStore(jobOn(dir), file));
});

test("damage: a restore keeps the previous store's JSONL copies, because they may be newer than the backup", async () => {
  const dir = temporaryFolder();
  const name = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11.jsonl";
  const file = join(temporaryFolder(), "backup.sqlite");
  good(await backupStore(jobOn(await smallStore()), file));
  writeFileSync(join(dir, name), "a copy\n");
  good(await restoreStore(jobOn(dir), file));
  const [folder = ""] = readdirSync(dir).filter((one) => one.startsWith("copies-before-restore-"));
  expect(readFileSync(join(dir, folder, name), "utf8")).toBe("a copy\n");
  expect(existsSync(join(dir, name))).toBe(false);
  await inEmbedded(dir, async () => {});
});

test("no timeout ends a long transaction, neither the server's nor the gateway's", async () => {
  const url = await freshUrl();
  await inPostgres(url, async () => {});
  const role = schemaOf(url);
  await runSql(
    url,
    `create role "${role}" login superuser password 'x'; alter role "${role}" set statement_timeout = '4s';
     alter role "${role}" set idle_in_transaction_session_timeout = '4s';
     alter role "${role}" set transaction_timeout = '60s'`,
  );
  cleanup(() => runSql(url, `drop role "${role}"`).then(() => {}));
  const asRole = new URL(url);
  asRole.username = role;
  asRole.password = "x";
  const timeouts = BULK_TIMEOUTS;
  const store = await openPostgres({ url: asRole.href, world: quietWorld(), timeouts });
  cleanup(() => store.close());
  const limits = async (begin: (tx: Tx) => Promise<boolean>) =>
    store.transaction(async (tx) => {
      expect(await begin(tx)).toBe(true);
      const names = ["statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"];
      const texts = names.map((name) => sql`current_setting(${name}) as ${sql.ref(name)}`);
      return (await sql`select ${sql.join(texts)}`.execute(tx)).rows;
    });
  const none = [
    { statement_timeout: "0", idle_in_transaction_session_timeout: "0", transaction_timeout: "0" },
  ];
  expect(await limits(beginBulkRead)).toEqual(none);
  expect(await limits(beginBulkWrite)).toEqual(none);
});
