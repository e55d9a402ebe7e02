// Recovers damaged stores: from their readable rows, and from the newest backup.

import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import {
  deleteSessionRows,
  insertSession,
  replaceSessionId,
} from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openJsonlCopies } from "../../../src/store/sqlite/jsonl-copies.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { type Recovered, recoverStore } from "../../../src/store/transfer/recover.ts";
import { backupStore } from "../../../src/store/transfer/transfer.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { sampleSession, silentLog, userMessage } from "../samples.ts";
import { good, jobOn, words } from "./moves.ts";

const ONE = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11";
const TWO = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b22";
const THREE = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b33";
const FOUR = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b44";
const KEY = "agent:main:main";
const NEW = "agent:main:new";
const RESEARCH = "agent:research:main";

const KEYS = { mainKey: "main", scope: "per-sender", defaultAgentId: "main" } as const;

const open = (dir: string): Promise<Store> => openSqlite({ dir, durability: "full", log: silentLog });

async function say(store: Store, key: string, id: string, ids: readonly string[]): Promise<void> {
  await store.transaction(async (tx) => {
    for (const one of ids) {
      const entry = userMessage(one, `word ${one}`);
      await appendEntry(tx, { sessionKey: key, sessionId: id, entry }, plainRedactor);
    }
  });
}

async function session(store: Store, key: string, sessionId: string): Promise<void> {
  await store.transaction((tx) => insertSession(tx, sampleSession({ key, sessionId })));
}

async function idsOf(dir: string): Promise<Record<string, string[]>> {
  const store = await open(dir);
  try {
    const rows = await store.db.selectFrom("messages").select(["id", "session_id"]).orderBy("seq").execute();
    return Object.fromEntries(
      [...Map.groupBy(rows, (row) => row.session_id)].map(([id, some]) => [id, some.map((row) => row.id)]),
    );
  } finally {
    await store.close();
  }
}

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `u${from + at}`);

/** Makes a closed store with a transcript of many pages, after a session that was deleted since the backup. */
async function longTranscript(): Promise<{ dir: string; ids: string[]; backup: string }> {
  const dir = join(temporaryFolder(), "state");
  const store = await open(dir);
  await session(store, KEY, ONE);
  await session(store, RESEARCH, TWO);
  await say(store, RESEARCH, TWO, ["deleted"]);
  await say(store, KEY, ONE, numbered(0, 300));
  const backup = join(dir, "backups", "parley-2026-11-28T09-00-00-000Z.sqlite");
  mkdirSync(join(dir, "backups"));
  good(await backupStore(jobOn(dir), backup));
  writeFileSync(join(dir, "backups", "parley-2025-11-28T09-00-00-000Z.sqlite"), "an older one");
  await store.transaction((tx) => deleteSessionRows(tx, RESEARCH, { transcripts: true }));
  await say(store, KEY, ONE, numbered(300, 400));
  await openJsonlCopies({ dir, log: silentLog, db: store.db }).flush();
  await store.close();
  return { dir, ids: numbered(0, 400), backup };
}

const recovered = async (dir: string): Promise<Recovered> => good(await recoverStore(jobOn(dir), KEYS));

/** Copies a store without its backups, and damages a page. */
function damagedAt(page: number, dir: string, isKept: (name: string) => boolean): string {
  const to = join(temporaryFolder(), "state");
  cpSync(dir, to, { recursive: true, filter: (name) => !name.endsWith(".lock") && isKept(name) });
  const bytes = readFileSync(join(to, STORE_FILE));
  bytes.fill(0xa5, page * 4_096, page * 4_096 + 4_096);
  writeFileSync(join(to, STORE_FILE), bytes);
  return to;
}

/** Returns some pages of a table. */
function pagesOf(dir: string, table = "messages"): number[] {
  const database = new DatabaseSync(join(dir, STORE_FILE), { readOnly: true });
  const rows = database
    .prepare("select pageno from dbstat where name = ? and pagetype = 'leaf' order by path")
    .all(table);
  database.close();
  return [0.1, 0.5, 0.9].map((part) => Number(rows[Math.floor(part * rows.length)]?.pageno) - 1);
}

test("damage: a damaged page loses at most its own rows, and the others keep their order", async () => {
  const { dir, ids } = await longTranscript();
  let lost = 0;
  for (const page of pagesOf(dir)) {
    const to = damagedAt(page, dir, (name) => !name.includes("backups"));
    const { kept, ...found } = await recovered(to);
    expect(found.backup).toBeUndefined();
    const { [ONE]: left = [], ...others } = await idsOf(to);
    expect(others).toEqual({});
    expect(left).toEqual(ids.filter((id) => left.includes(id)));
    expect(left.length).toBeGreaterThan(350);
    if (left.length < ids.length) expect(found.incomplete).toContain("messages");
    lost += ids.length - left.length;
    expect(readdirSync(kept)).toEqual(
      expect.arrayContaining([`${ONE}.jsonl`, STORE_FILE, `${STORE_FILE}-mark`]),
    );
  }
  expect(lost).toBeGreaterThan(0);
});

test("damage: lost messages come back from the newest backup, in their order, but none of a deleted session", async () => {
  const { dir, ids, backup } = await longTranscript();
  let used = 0;
  for (const page of pagesOf(dir)) {
    const to = damagedAt(page, dir, () => true);
    const found = await recovered(to);
    const { [ONE]: left = [], ...others } = await idsOf(to);
    expect(others).toEqual({});
    // Messages since the backup may be lost.
    expect(left.slice(0, 300)).toEqual(ids.slice(0, 300));
    expect(left).toEqual(ids.filter((id) => left.includes(id)));
    if (found.incomplete.includes("messages")) {
      expect(found.backup).toBe(backup.replace(dir, to));
      used += 1;
    }
  }
  expect(used).toBeGreaterThan(0);
});

async function sessionsIn(dir: string): Promise<Record<string, string>> {
  const store = await open(dir);
  const rows = await store.db.selectFrom("sessions").select(["key", "session_id"]).orderBy("key").execute();
  await store.close();
  return Object.fromEntries(rows.map((row) => [row.key, row.session_id]));
}

test.each(["sessions", "session_ids"])(
  "damage: without the table %s a deleted session stays deleted, and a new one and a reset are kept",
  async (table) => {
    const { dir, ids } = await longTranscript();
    const store = await open(dir);
    await session(store, NEW, THREE);
    await say(store, NEW, THREE, ["new"]);
    await store.transaction((tx) => replaceSessionId(tx, KEY, FOUR, Date.now()));
    await say(store, KEY, FOUR, ["after the reset"]);
    await store.close();
    const to = damagedAt(pagesOf(dir, table)[0] ?? 0, dir, () => true);
    expect((await recovered(to)).incomplete).toEqual([table]);
    expect(await sessionsIn(to)).toEqual({ [KEY]: FOUR, [NEW]: THREE });
    expect(await idsOf(to)).toEqual({ [ONE]: ids, [THREE]: ["new"], [FOUR]: ["after the reset"] });
  },
);

test("damage: an emptied database is not a store, and the newest backup that can be read is named", async () => {
  const { dir, backup } = await longTranscript();
  writeFileSync(join(dir, "backups", "zz-another.sqlite"), "of somebody else");
  const emptied = new DatabaseSync(join(temporaryFolder(), "emptied"));
  emptied.exec("create table t (a); drop table t");
  const bytes = readFileSync(emptied.location() ?? "");
  emptied.close();
  writeFileSync(join(dir, STORE_FILE), bytes);
  expect(words(await recoverStore(jobOn(dir), KEYS))).toContain(`store restore ${backup}`);
});

test("damage: a store of which nothing can be read is not replaced, and the newest backup is named", async () => {
  const { dir, backup } = await longTranscript();
  writeFileSync(join(dir, STORE_FILE), "x".repeat(9_000));
  const said = words(await recoverStore(jobOn(dir), KEYS));
  expect(said).toContain(`nothing in ${join(dir, STORE_FILE)} can be read`);
  expect(said).toContain(`npx parley-gateway store restore ${backup}`);
  expect(readFileSync(join(dir, STORE_FILE), "utf8")).toBe("x".repeat(9_000));
  const none = temporaryFolder();
  expect(words(await recoverStore(jobOn(none), KEYS))).toContain("there is no embedded store");
  expect(readdirSync(none).filter((name) => !name.startsWith("gateway."))).toEqual([]);
});

test("damage: a store that lost its end is refused, and opens again after the recovery", async () => {
  const { dir } = await longTranscript();
  truncateSync(join(dir, STORE_FILE), readFileSync(join(dir, STORE_FILE)).length - 20 * 4_096);
  await expect(open(dir)).rejects.toThrow("npx parley-gateway store recover");
  const { kept, tally } = await recovered(dir);
  expect(tally.sessions).toBeGreaterThanOrEqual(1);
  expect(existsSync(join(kept, STORE_FILE))).toBe(true);
  expect(existsSync(join(dir, `${STORE_FILE}-mark`))).toBe(false);
  expect(((await idsOf(dir))[ONE] ?? []).length).toBeGreaterThanOrEqual(300);
});

test("damage: a cancelled recovery changes nothing, and a store in use is not recovered", async () => {
  const dir = join(temporaryFolder(), "state");
  const store = await open(dir);
  await session(store, "agent:main:main", ONE);
  expect(words(await recoverStore(jobOn(dir), KEYS))).toContain("Stop that gateway");
  await store.close();
  const before = readFileSync(join(dir, STORE_FILE));
  const stopped = jobOn(dir, { signal: AbortSignal.abort() });
  expect(words(await recoverStore(stopped, KEYS))).toContain("stopped");
  expect(readFileSync(join(dir, STORE_FILE)).equals(before)).toBe(true);
  expect(existsSync(join(dir, `${STORE_FILE}-mark`))).toBe(true);
  expect(words(await recoverStore(jobOn({ url: "postgres://h/d" }), KEYS))).toContain(
    "only an embedded store",
  );
});
