// Restores backups that contain code, or in which another kind of object replaces a table or the file.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { inspectStoreDir } from "../../../src/store/inspect.ts";
import type { Store } from "../../../src/store/sql.ts";
import { STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { GRANTS, tablesOf } from "../../../src/store/transfer/grants.ts";
import { backupStore, restoreStore } from "../../../src/store/transfer/transfer.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { AS_BEFORE, freshUrl, good, inEmbedded, inPostgres, jobOn, smallStore, words } from "./moves.ts";

/** Makes a backup of a small store, and changes the backup with these statements. */
async function changedBackup(statements: string): Promise<string> {
  const file = join(temporaryFolder(), "backup.sqlite");
  good(await backupStore(jobOn(await smallStore()), file));
  const database = new DatabaseSync(file);
  database.exec(statements);
  database.close();
  return file;
}

/** SQL that approves every pairing request. */
const TRIGGER = `create trigger approve_all after insert on channel_peers begin
  update channel_peers set state = 'approved';
end;`;
const VIEW = "create view everything as select entry_json from messages;";
const PLANTED = ['trigger "approve_all"', 'view "everything"'];

function objectsIn(dir: string): string[] {
  const database = new DatabaseSync(join(dir, STORE_FILE), { readOnly: true });
  const rows = database.prepare("select name from sqlite_schema").all();
  database.close();
  return rows.map(({ name }) => String(name));
}

test("a trigger and a view added to a backup are reported and not restored", async () => {
  const file = await changedBackup(TRIGGER + VIEW);
  const dir = temporaryFolder();
  expect(good(await restoreStore(jobOn(dir), file)).leftOut).toEqual(PLANTED);
  expect(objectsIn(dir)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/approve_all|everything/)]),
  );
  const url = await freshUrl();
  expect(good(await restoreStore(jobOn({ url }), file)).leftOut).toEqual(PLANTED);
  for (const messages of [
    await inEmbedded(dir, (store) => store.db.selectFrom("messages").select("id").execute()),
    await inPostgres(url, (store) => store.db.selectFrom("messages").select("id").execute()),
  ]) {
    expect(messages).toEqual([{ id: "m1" }]);
  }
});

test("a backup of the version before is converted without objects that were added to it", async () => {
  const sessions = "create trigger s after insert on sessions begin delete from messages; end;";
  const file = await changedBackup(AS_BEFORE + sessions);
  const dir = temporaryFolder();
  expect(good(await restoreStore(jobOn(dir), file)).leftOut).toEqual(['trigger "s"']);
  const kept = await inEmbedded(dir, (store) => store.db.selectFrom("messages").select("id").execute());
  expect(kept).toEqual([{ id: "m1" }]);
  expect(objectsIn(dir)).not.toContain("s");
});

test.each([
  ["a view", "drop table channel_peers; create view channel_peers as select 1 as channel;"],
  ["a table with other columns", "drop table waits; create table waits (call_id text, payload text);"],
])("a backup is refused if %s replaces a table", async (_, statements) => {
  const file = await changedBackup(statements);
  const said = words(await restoreStore(jobOn(temporaryFolder()), file));
  expect(said).toMatch(/was altered: .* is not a table of this program/);
});

test("a pipe that replaces a backup or its log is refused without opening it", async () => {
  const pipe = join(temporaryFolder(), "pipe");
  execFileSync("mkfifo", [pipe]);
  expect(words(await restoreStore(jobOn(temporaryFolder()), pipe))).toContain("is not a regular file");
  const file = await changedBackup("");
  execFileSync("mkfifo", [`${file}-wal`]);
  expect(words(await restoreStore(jobOn(temporaryFolder()), file))).toContain("-wal is not a regular file");
});

test("a pipe that replaces the store is refused without opening it", async () => {
  const dir = temporaryFolder();
  execFileSync("mkfifo", [join(dir, STORE_FILE)]);
  await expect(inEmbedded(dir, async () => {})).rejects.toThrow("is not a regular file");
});

test("the schema of an open store is compared with this program's schema", async () => {
  const dir = await smallStore();
  expect(inspectStoreDir(dir).differences).toEqual([]);
  const database = new DatabaseSync(join(dir, STORE_FILE));
  database.exec(`${TRIGGER} drop index sessions_by_label;`);
  database.close();
  expect(inspectStoreDir(dir).differences).toEqual([
    'unknown trigger "approve_all"',
    'missing index "sessions_by_label"',
  ]);
});

test("no statement can write to the schema table of an open store", async () => {
  await inEmbedded(await smallStore(), async (store) => {
    const { sql } = await import("kysely");
    await store.transaction(async (tx) => {
      await sql`pragma writable_schema = on`.execute(tx);
      await expect(sql`update sqlite_schema set sql = ''`.execute(tx)).rejects.toThrow("may not be modified");
    });
  });
});

interface FeatureGrant {
  /** SQL that inserts a row which gives rights. */
  readonly insert: string;
  /** The kind of the row, and how a person sees it. */
  readonly kind: string;
  readonly line: string;
}
const FEATURES = Object.values(
  import.meta.glob<{ readonly grants: readonly FeatureGrant[] }>("../../features/*/grants.ts", {
    eager: true,
  }),
).flatMap(({ grants }) => grants);

/** SQL that adds a rule which shows `ls`, but has the digest of another command, and other rights. */
const RIGHTS = `
  insert into permission_rules (id, agent_id, session_key, scope, digest, command, folder, created_at, created_by)
    values ('r1', 'main', 'agent:main:main', 'always', 'digest-of-another-command', 'ls', '/srv/app', 1, 'owner');
  insert into channel_peers (channel, account_id, peer_id, name, state, asked_at, told_at)
    values ('telegram', 'default', '7', 'Mallory', 'approved', 1, 1);
  insert into access_tokens (id, token_id, name, scopes_json, created_at, expires_at)
    values ('t1', 't', 'laptop', '["operator.admin"]', 1, 9);
  ${FEATURES.map(({ insert }) => insert).join("\n")}`;

test.each(["embedded", "postgres"])(
  "a restore into the %s store leaves out all rows that give rights, and names them",
  async (kind) => {
    const file = await changedBackup(RIGHTS);
    const place = kind === "embedded" ? temporaryFolder() : { url: await freshUrl() };
    const { withheld = [], tally } = good(await restoreStore(jobOn(place, { accept: async () => [] }), file));
    expect(tally.messages).toBe(1);
    expect(withheld.map((one) => `${one.kind} ${one.count}: ${one.lines.join("; ")}`).sort()).toEqual(
      [
        ...FEATURES.map(({ kind: name, line }) => `${name} 1: ${line}`),
        "rules 1: main may run in /srv/app: ls",
        "people 1: telegram:7 Mallory (approved)",
        'tokens 1: laptop with ["operator.admin"]',
      ].sort(),
    );
    const left = async ({ db }: Store) => {
      const tables = [...tablesOf(Object.keys(GRANTS))];
      const rows = await Promise.all(tables.map((table) => db.selectFrom(table).selectAll().execute()));
      return rows.flat();
    };
    const rows =
      typeof place === "string" ? await inEmbedded(place, left) : await inPostgres(place.url, left);
    expect(rows).toEqual([]);
  },
);

test("an accepted rule allows the command that it shows, but no files that the backup says were seen", async () => {
  const file = await changedBackup(RIGHTS);
  const dir = temporaryFolder();
  const { withheld } = good(
    await restoreStore(jobOn(dir, { accept: async () => ["rules", "people"] }), file),
  );
  const left = withheld?.map(({ kind }) => kind) ?? [];
  expect(left.sort()).toEqual(["tokens", ...FEATURES.map(({ kind }) => kind)].sort());
  await inEmbedded(dir, async ({ db }) => {
    const rules = await db.selectFrom("permission_rules").select(["command", "digest"]).execute();
    expect(rules).toEqual([{ command: "ls", digest: "[]" }]);
    expect(await db.selectFrom("channel_peers").select("peer_id").execute()).toEqual([{ peer_id: "7" }]);
  });
});
