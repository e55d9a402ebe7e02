// Moves that are refused: each error says what to do, and nothing is changed.

import { copyFileSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect } from "vitest";
import { insertDelivery } from "../../../src/store/queries/channels/deliveries.ts";
import { joinProcesses } from "../../../src/store/queries/processes.ts";
import { insertSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { SCHEMA_VERSION } from "../../../src/store/schema/conversion.ts";
import type { Store } from "../../../src/store/sql.ts";
import { STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { backupStore, migrateStore, restoreStore } from "../../../src/store/transfer/transfer.ts";
import { both, share, test } from "../../kit/deep.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { runSql, serverUrl } from "../../kit/store/postgres.ts";
import { sampleSession } from "../samples.ts";
import {
  freshUrl,
  good,
  inEmbedded,
  inPostgres,
  jobOn,
  saySomething,
  schemaOf,
  smallStore,
  words,
} from "./moves.ts";

/** Starts and stops a gateway. */
async function startOnce(store: Store): Promise<void> {
  await store.transaction(async (tx) => {
    for (const agentId of ["main", "research"]) {
      const key = `agent:${agentId}:main`;
      await insertSession(tx, sampleSession({ key, agentId, sessionId: `first-of-${agentId}` }));
    }
  });
}

async function backup(of?: string): Promise<string> {
  const file = join(temporaryFolder(), "backup.sqlite");
  good(await backupStore(jobOn(of ?? (await smallStore())), file));
  return file;
}

const sessionsIn = async (store: Store) =>
  (await store.db.selectFrom("sessions").select("session_id").orderBy("session_id").execute()).map(
    (row) => row.session_id,
  );

test("a target with sessions that have no messages, runs or settings counts as empty", async () => {
  const file = await backup();
  const url = await freshUrl();
  await inPostgres(url, startOnce);
  good(await restoreStore(jobOn({ url }), file));
  expect(await inPostgres(url, sessionsIn)).toEqual(["session-1"]);
  expect(
    await inPostgres(url, ({ db }) => db.selectFrom("session_ids").select("session_id").execute()),
  ).toEqual([{ session_id: "session-1" }]);

  const dir = temporaryFolder();
  await inEmbedded(dir, startOnce);
  good(await restoreStore(jobOn(dir), file));
  expect(await inEmbedded(dir, sessionsIn)).toEqual(["session-1"]);
});

const SOMETHING: readonly (readonly [string, (store: Store) => Promise<unknown>, string])[] = [
  ["a message", saySomething, "messages"],
  [
    "a label",
    (store) => store.transaction((tx) => updateSession(tx, "agent:main:main", { label: "mine" })),
    "sessions",
  ],
  [
    "an archived session",
    (store) => store.transaction((tx) => updateSession(tx, "agent:main:main", { archivedAt: 1 })),
    "sessions",
  ],
  [
    "a place in a lane",
    (store) => store.transaction((tx) => tx.updateTable("sessions").set({ next_lane_seq: 2 }).execute()),
    "sessions",
  ],
  [
    "an answer",
    (store) =>
      store.transaction((tx) =>
        tx
          .insertInto("idempotency")
          .values({ key: "k", caller: "", method: "", params_hash: "", answer_json: "1", created_at: 1 })
          .execute(),
      ),
    "idempotency",
  ],
];

both.each(share(SOMETHING.slice(0, 1), SOMETHING.slice(1)))(
  "a target that contains %s is refused and not changed",
  async (_name, add, table) => {
    const file = await backup();
    const url = await freshUrl();
    const dir = temporaryFolder();
    for (const [inside, place, job] of [
      [inPostgres, url, jobOn({ url })],
      [inEmbedded, dir, jobOn(dir)],
    ] as const) {
      await inside(place, async (store) => {
        if (table !== "messages") await startOnce(store);
        await add(store);
      });
      const before = await inside(place, sessionsIn);
      const said = words(await restoreStore(job, file));
      expect(said).toContain(`is not empty: it has `);
      expect(said).toContain(table);
      expect(said).toMatch(/schema=name|store\.dir/);
      expect(await inside(place, sessionsIn)).toEqual(before);
    }
  },
);

test("a database with a running gateway is refused, and the error shows its address without the password", async () => {
  const url = await freshUrl();
  const facts = { processId: "p", host: "here", version: "1" };
  await inPostgres(url, async (store) => {
    await store.transaction((tx) => joinProcesses(tx, facts, 0));
    // The other gateway is alive during the whole test.
    await store.transaction((tx) => tx.updateTable("processes").set({ beat_at: 4e12 }).execute());
  });
  const said = words(await migrateStore(jobOn(await smallStore()), url));
  expect(said).toContain("in use by a running gateway");
  expect(said).toContain(`schema=${schemaOf(url)}`);
  expect(said).not.toContain("word");
});

test("the embedded store of a running gateway is neither moved nor replaced, but it can be backed up", async () => {
  const dir = await smallStore();
  const url = await freshUrl();
  const file = await backup();
  await inEmbedded(dir, async () => {
    expect(words(await migrateStore(jobOn(dir), url))).toContain("belongs to a gateway that is running");
    expect(words(await restoreStore(jobOn(dir), file))).toContain("belongs to a gateway that is running");
    await backup(dir);
  });
  const made = `select 1 from pg_namespace where nspname = '${schemaOf(url)}'`;
  expect(await runSql(url, made)).toEqual([]);
});

test.each([
  ["no URL at all", "it is not a valid URL"],
  ["mysql://u:geheim@127.0.0.1/d", "does not begin with postgresql://"],
  ["postgres://u:gehe#im@127.0.0.1/d", "percent-encoded"],
  ["postgres://u:geheim@127.0.0.1", "names no database"],
  ["postgres://u:geheim@127.0.0.1/d?schema=No%20Schema", "its schema must be"],
])(
  "an invalid address gives a usage error that names --to and repeats no part of the address: %s",
  async (url, why) => {
    const refused = await migrateStore(jobOn(await smallStore()), url);
    expect(refused).toMatchObject({ ok: false, code: "invalid_argument" });
    expect(words(refused)).toContain(why);
    expect(words(refused)).toContain("--to");
    expect(words(refused)).not.toContain("gehe");
    expect(words(refused)).not.toContain("store.postgresUrl");
  },
);

test("a missing server and a wrong password are reported", async () => {
  const dir = await smallStore();
  const nowhere = words(await migrateStore(jobOn(dir), "postgres://u:geheim@127.0.0.1:1/d"));
  expect(nowhere).toContain("postgresql://127.0.0.1:1/d cannot be reached");
  const wrong = new URL(await serverUrl());
  wrong.password = "geheim";
  expect(words(await migrateStore(jobOn(dir), wrong.href))).toContain("in --to");
  for (const said of [nowhere, words(await backupStore(jobOn({ url: wrong.href }), join(dir, "b")))]) {
    expect(said).not.toContain("geheim");
  }
});

test("a schema of another version is neither filled nor read, and is not changed", async () => {
  const url = await freshUrl();
  const file = await backup();
  await inPostgres(url, startOnce);
  const version = `"${schemaOf(url)}".schema_version`;
  const known = SCHEMA_VERSION;
  const target = join(temporaryFolder(), "none.sqlite");
  await runSql(url, `update ${version} set version = ${known + 1}`);
  expect(words(await restoreStore(jobOn({ url }), file))).toContain("the schema of another version");
  expect(words(await backupStore(jobOn({ url }), target))).toContain("written by a newer version");
  await runSql(url, `update ${version} set version = ${known - 1}`);
  expect(words(await backupStore(jobOn({ url }), target))).toContain("written by an older version");
  expect(await runSql(url, `select version::int from ${version}`)).toEqual([{ version: known - 1 }]);
  expect(readdirSync(join(target, ".."))).toEqual([]);
});

test("if a row is too long for PostgreSQL's indexes, the store is refused with the reason", async () => {
  const dir = await smallStore();
  await inEmbedded(dir, (store) =>
    store.transaction((tx) =>
      insertDelivery(tx, {
        ...{ id: "d", sessionKey: "s", kind: "send", text: "t", state: "pending", createdAt: 1 },
        route: {
          channel: "webchat",
          to: Array.from({ length: 4_000 }, (_, n) => (n * n).toString(36)).join(""),
        },
      }),
    ),
  );
  const url = await freshUrl();
  const said = words(await migrateStore(jobOn(dir), url));
  expect(said).toMatch(/^the database cannot store a row: index row .*size/);
  expect(await inPostgres(url, sessionsIn)).toEqual([]);
});

test("a backup of a missing store creates nothing", async () => {
  const folder = temporaryFolder();
  const url = await freshUrl();
  expect(words(await backupStore(jobOn({ url }), join(folder, "b")))).toContain("does not exist");
  expect(words(await backupStore(jobOn(temporaryFolder()), join(folder, "b")))).toContain(
    "there is no embedded store",
  );
  expect(words(await migrateStore(jobOn(temporaryFolder()), url))).toContain("there is no embedded store");
  expect(readdirSync(folder)).toEqual([]);
  expect(await runSql(url, `select 1 from pg_namespace where nspname = '${schemaOf(url)}'`)).toEqual([]);
});

test("a backup never overwrites a file; the error names the existing file", async () => {
  const dir = await smallStore();
  const folder = temporaryFolder();
  const file = join(folder, "mine");
  writeFileSync(file, "mine");
  expect(words(await backupStore(jobOn(dir), file))).toContain("already exists");
  expect(readFileSync(file, "utf8")).toBe("mine");
  expect(words(await backupStore(jobOn(dir), folder))).toContain("name a file in it");
  expect(words(await backupStore(jobOn(dir), join(file, "below")))).toContain("cannot be read or written");
  expect(readdirSync(folder)).toEqual(["mine"]);
});

/** Files that are not valid backups, with the expected errors. */
const UNSOUND: readonly (readonly [string, (file: string) => void, RegExp])[] = [
  ["nothing", () => {}, /there is no file .*backup$/],
  ["a directory", (file) => mkdirSync(file), /is a directory.*Give the path of the database file/],
  ["an empty file", (file) => writeFileSync(file, ""), /is not a store of this program/],
  ["a text", (file) => writeFileSync(file, "hello ".repeat(1_000)), /is not a store of this program/],
  [
    "another program's database",
    (file) => {
      const other = new DatabaseSync(file);
      other.exec("create table notes (text text); pragma user_version = 1");
      other.close();
    },
    /is not a store of this program/,
  ],
  [
    "a backup of a newer version",
    (file) => {
      const newer = new DatabaseSync(file);
      newer.exec(`pragma application_id = ${0x5061726c}; pragma user_version = ${SCHEMA_VERSION + 1}`);
      newer.close();
    },
    /newer version .*schema version \d+; this program has version \d+ of release .*Install the newer/,
  ],
  [
    "a backup of an unreleased version",
    (file) => {
      const old = new DatabaseSync(file);
      old.exec(`pragma application_id = ${0x5061726c}; pragma user_version = 40`);
      old.close();
    },
    /unreleased version of this program \(schema version 40\)/,
  ],
];

test.each(UNSOUND)("a file that is not a backup is not restored: %s", async (_name, make, said) => {
  const file = join(temporaryFolder(), "backup");
  make(file);
  const dir = temporaryFolder();
  const url = await freshUrl();
  expect(words(await restoreStore(jobOn(dir), file))).toMatch(said);
  expect(words(await restoreStore(jobOn({ url }), file))).toMatch(said);
  expect(readdirSync(dir)).toEqual([]);
  expect(await runSql(url, `select 1 from pg_namespace where nspname = '${schemaOf(url)}'`)).toEqual([]);
});

test("a damaged file is neither restored, migrated nor backed up", async () => {
  const dir = temporaryFolder();
  await inEmbedded(dir, (store) => saySomething(store, "word ".repeat(20_000)));
  const file = join(dir, STORE_FILE);
  const whole = readFileSync(file);
  const damages: ((copy: string) => void)[] = [
    (copy) => truncateSync(copy, whole.length - 8_192),
    (copy) =>
      writeFileSync(copy, Buffer.concat([whole.subarray(0, 40_000), Buffer.alloc(whole.length - 40_000, 7)])),
  ];
  for (const damage of damages) {
    const broken = temporaryFolder();
    copyFileSync(file, join(broken, STORE_FILE));
    damage(join(broken, STORE_FILE));
    const before = readFileSync(join(broken, STORE_FILE));
    const to = temporaryFolder();
    const url = await freshUrl();
    expect(words(await restoreStore(jobOn(to), join(broken, STORE_FILE)))).toContain("is damaged");
    expect(words(await migrateStore(jobOn(broken), url))).toContain("is damaged");
    expect(words(await backupStore(jobOn(broken), join(to, "b")))).toContain(
      `${join(broken, STORE_FILE)} is damaged`,
    );
    expect(words(await restoreStore(jobOn(broken), await backup()))).toContain("a store that cannot be read");
    expect(readdirSync(to)).toEqual([]);
    expect(readFileSync(join(broken, STORE_FILE)).equals(before)).toBe(true);
  }
});

// Skipped on systems without /proc.
test.skipIf(lacks("Linux", process.platform === "linux"))(
  "a path at which no folder can be created gives a clear error",
  async () => {
    const said = words(await backupStore(jobOn(await smallStore()), "/proc/parley/backup.sqlite"));
    expect(said).toContain(
      "cannot be read or written: EPERM: no folder can be created there, mkdir '/proc/parley'",
    );
  },
);
