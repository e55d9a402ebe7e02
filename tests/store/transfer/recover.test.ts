// `parley store recover` restores lost data, and changes nothing else.

import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fillFirstWords } from "../../../src/store/first-words.ts";
import { insertRun } from "../../../src/store/queries/runs/runs.ts";
import {
  deleteSessionRows,
  insertSession,
  replaceSessionId,
} from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import { forkMarkerId, linkFork } from "../../../src/store/queries/transcripts/forks.ts";
import { readHistory } from "../../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openJsonlCopies, PROGRESS_FILE } from "../../../src/store/sqlite/jsonl-copies.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { type Recovered, recoverStore } from "../../../src/store/transfer/recover.ts";
import { quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { assistantMessage, sampleRun, sampleSession, silentLog, userMessage } from "../samples.ts";
import { good, jobOn, words } from "./moves.ts";

const KEYS = { mainKey: "main", scope: "per-sender", defaultAgentId: "main" } as const;
const ONE = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11";
const TWO = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b22";
const THREE = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b33";
const RESEARCH = "agent:research:main";

const open = (dir: string): Promise<Store> => openSqlite({ dir, durability: "full", log: silentLog });

async function session(store: Store, key: string, sessionId: string): Promise<void> {
  await store.transaction((tx) => insertSession(tx, sampleSession({ key, sessionId })));
}

async function say(
  store: Store,
  sessionKey: string,
  sessionId: string,
  ids: readonly string[],
): Promise<void> {
  await store.transaction(async (tx) => {
    for (const id of ids) {
      const entry = id.startsWith("a") ? assistantMessage(id, `answer ${id}`) : userMessage(id, `word ${id}`);
      await appendEntry(tx, { sessionKey, sessionId, entry }, plainRedactor);
    }
  });
}

async function writeCopies(dir: string, store: Store): Promise<void> {
  const jsonlCopies = openJsonlCopies({ dir, log: silentLog, db: store.db });
  await jsonlCopies.flush();
  await jsonlCopies.close();
}

/** Makes a store that has lost its log: the message `before` is stored, `after` was only in the log. */
async function lost(
  before: (store: Store) => Promise<void>,
  after: (store: Store) => Promise<void>,
): Promise<string> {
  const dir = join(temporaryFolder(), "state");
  const first = await open(dir);
  await before(first);
  await writeCopies(dir, first);
  await first.close();
  const old = readFileSync(join(dir, STORE_FILE));
  const second = await open(dir);
  await after(second);
  await writeCopies(dir, second);
  await second.close();
  writeFileSync(join(dir, STORE_FILE), old);
  return dir;
}

async function idsOf(dir: string): Promise<Record<string, string[]>> {
  const store = await open(dir);
  try {
    const rows = await store.db.selectFrom("messages").select(["id", "session_id"]).orderBy("seq").execute();
    const ids: Record<string, string[]> = {};
    for (const { id, session_id } of rows) ids[session_id] = [...(ids[session_id] ?? []), id];
    await writeCopies(dir, store);
    return ids;
  } finally {
    await store.close();
  }
}

/** Makes a closed store with a transcript of many pages, and its JSONL copy. */
async function longTranscript(): Promise<{ dir: string; ids: string[] }> {
  const dir = join(temporaryFolder(), "state");
  const store = await open(dir);
  await session(store, "agent:main:main", ONE);
  const ids = Array.from({ length: 400 }, (_, at) => `u${at}`);
  await say(store, "agent:main:main", ONE, ids);
  await writeCopies(dir, store);
  await store.close();
  return { dir, ids };
}

const copyOf = (dir: string, id: string): string => readFileSync(join(dir, `${id}.jsonl`), "utf8");
const recovered = async (dir: string): Promise<Recovered> => good(await recoverStore(jobOn(dir), KEYS));

test("damage: a fork that only its JSONL copy contains shares the messages of its origin again", async () => {
  const fork = `${RESEARCH}:fork:1`;
  const dir = await lost(
    async (store) => {
      await session(store, RESEARCH, ONE);
      await say(store, RESEARCH, ONE, ["u1"]);
    },
    async (store) => {
      await say(store, RESEARCH, ONE, ["u2", "u3"]);
      await session(store, fork, TWO);
      await store.transaction((tx) => linkFork(tx, TWO, { from: ONE, at: "u2" }));
      await say(store, fork, TWO, [forkMarkerId(TWO), "u4"]);
    },
  );
  await recovered(dir);
  const store = await open(dir);
  const page = await readHistory(store.db, { sessionId: TWO, limit: 9, includeTools: true });
  await store.close();
  expect(good(page).messages.map(({ id }) => id)).toEqual(["u1", "u2", forkMarkerId(TWO), "u4"]);
});

test("damage: data that only the JSONL copies contain is restored, including sessions", async () => {
  const dir = await lost(
    async (store) => {
      await session(store, "agent:main:main", ONE);
      await say(store, "agent:main:main", ONE, ["u1", "a1"]);
    },
    async (store) => {
      await say(store, "agent:main:main", ONE, ["u2", "a2"]);
      await session(store, RESEARCH, TWO);
      await say(store, RESEARCH, TWO, ["u3"]);
    },
  );
  await expect(open(dir)).rejects.toThrow("npx parley-gateway store recover");
  const copies = [copyOf(dir, ONE), copyOf(dir, TWO)];
  const damaged = readFileSync(join(dir, STORE_FILE));
  const { kept, ...found } = await recovered(dir);
  expect(found).toMatchObject({
    ...{ sessionsFromCopies: 1, messagesFromCopies: 3, incomplete: [], unreadLines: 0 },
    tally: { sessions: 2, messages: 5 },
  });
  expect(readFileSync(join(kept, STORE_FILE)).equals(damaged)).toBe(true);
  expect(await idsOf(dir)).toEqual({ [ONE]: ["u1", "a1", "u2", "a2"], [TWO]: ["u3"] });
  expect([copyOf(dir, ONE), copyOf(dir, TWO)]).toEqual(copies);
  const store = await open(dir);
  const agents = await store.db
    .selectFrom("sessions")
    .select(["key", "agent_id", "kind"])
    .orderBy("key")
    .execute();
  expect(agents).toEqual([
    { key: "agent:main:main", agent_id: "main", kind: "main" },
    { key: RESEARCH, agent_id: "research", kind: "main" },
  ]);
  await store.close();
});

test("damage: messages that were deleted with an origin stay deleted, and those that its fork shares are restored", async () => {
  const dir = join(temporaryFolder(), "state");
  const store = await open(dir);
  const fork = `${RESEARCH}:fork:${TWO}`;
  await session(store, RESEARCH, ONE);
  await say(store, RESEARCH, ONE, ["u1", "a1", "u2", "a2"]);
  await session(store, fork, THREE);
  await store.transaction((tx) => linkFork(tx, THREE, { from: ONE, at: "u2" }));
  await say(store, fork, THREE, [forkMarkerId(THREE)]);
  await writeCopies(dir, store);
  // The process ends before the copies are written, and then the store loses a message.
  await store.transaction((tx) => deleteSessionRows(tx, RESEARCH, { transcripts: true }));
  await store.transaction((tx) => tx.deleteFrom("messages").where("id", "=", "a1").execute());
  await store.close();
  expect(await recovered(dir)).toMatchObject({ sessionsFromCopies: 0, messagesFromCopies: 1 });
  const again = await open(dir);
  const rows = await again.db.selectFrom("messages").select(["id", "session_key"]).orderBy("seq").execute();
  await again.close();
  const shared = ["u1", "a1", "u2"].map((id) => ({ id, session_key: fork }));
  expect(rows).toEqual(expect.arrayContaining(shared));
  expect(rows).toHaveLength(4);
});

test("damage: if a reset was lost, it is repeated; a deleted transcript stays deleted", async () => {
  const dir = await lost(
    async (store) => {
      await session(store, "agent:main:main", ONE);
      await say(store, "agent:main:main", ONE, ["u0"]);
      await session(store, RESEARCH, TWO);
      await store.transaction((tx) =>
        insertRun(tx, sampleRun({ sessionKey: RESEARCH, sessionId: TWO, state: "ok" })),
      );
      await say(store, RESEARCH, TWO, ["u1"]);
    },
    async (store) => {
      await store.transaction((tx) => replaceSessionId(tx, "agent:main:main", THREE, 5_000));
      await say(store, "agent:main:main", THREE, ["u2"]);
    },
  );
  rmSync(join(dir, `${STORE_FILE}-mark`));
  const before = await openSqlite({ dir, durability: "normal", log: silentLog });
  await before.transaction((tx) => deleteSessionRows(tx, RESEARCH, { transcripts: true }));
  await before.close();
  await recovered(dir);
  expect(await idsOf(dir)).toEqual({ [ONE]: ["u0"], [THREE]: ["u2"] });
  const again = await open(dir);
  await fillFirstWords(again, { world: { ...quietWorld(), redactor: plainRedactor } });
  const rows = await again.db.selectFrom("sessions").select(["key", "session_id", "first_words"]).execute();
  await again.close();
  expect(rows).toEqual([{ key: "agent:main:main", session_id: THREE, first_words: "word u2" }]);
});

test("damage: for a file that was cut in half, its remaining pages are restored, and the messages come from the JSONL copies", async () => {
  const { dir, ids } = await longTranscript();
  truncateSync(join(dir, STORE_FILE), readFileSync(join(dir, STORE_FILE)).length / 2);
  const copy = copyOf(dir, ONE);
  await recovered(dir);
  expect(await idsOf(dir)).toEqual({ [ONE]: ids });
  expect(copyOf(dir, ONE)).toBe(copy);
});

test("damage: a damaged page loses at most its own rows, and the messages are restored in order", async () => {
  const { dir, ids } = await longTranscript();
  const whole = readFileSync(join(dir, STORE_FILE));
  for (const page of [40, 60, 80, 100]) {
    const bytes = Buffer.from(whole);
    bytes.fill(0xa5, page * 4_096, page * 4_096 + 4_096);
    const to = temporaryFolder();
    writeFileSync(join(to, STORE_FILE), bytes);
    copyFileSync(join(dir, `${ONE}.jsonl`), join(to, `${ONE}.jsonl`));
    await recovered(to);
    expect(await idsOf(to), `page ${page}`).toEqual({ [ONE]: ids });
  }
});

test("damage: a missing store is rebuilt from its JSONL copies, but a store that never existed is not created", async () => {
  const dir = join(temporaryFolder(), "state");
  const store = await open(dir);
  await session(store, "agent:main:main", ONE);
  await say(store, "agent:main:main", ONE, ["u1", "a1"]);
  await writeCopies(dir, store);
  await store.close();
  rmSync(join(dir, STORE_FILE));
  writeFileSync(join(dir, `${ONE}.jsonl`), `${copyOf(dir, ONE)}{"half":\n`);
  expect(await recovered(dir)).toMatchObject({
    sessionsFromCopies: 1,
    messagesFromCopies: 2,
    unreadLines: 1,
  });
  expect(await idsOf(dir)).toEqual({ [ONE]: ["u1", "a1"] });
  const none = temporaryFolder();
  expect(words(await recoverStore(jobOn(none), KEYS))).toContain("there is no embedded store");
  expect(readdirSync(none).filter((name) => !name.startsWith("gateway."))).toEqual([]);
});

test("damage: if a recovery ends while it replaces the files, a start without the old log is refused", async () => {
  const running = temporaryFolder();
  await (await open(running)).close();
  const store = await open(running);
  await store.transaction((tx) =>
    tx.insertInto("chains").values({ chain_id: "in the log", runs: 1 }).execute(),
  );
  const dir = join(temporaryFolder(), "state");
  cpSync(running, dir, { recursive: true, filter: (name) => !name.endsWith(".lock") });
  await store.close();
  // Cannot be removed as a file, so the recovery fails after it has moved the log.
  mkdirSync(join(dir, PROGRESS_FILE));
  expect(words(await recoverStore(jobOn(dir), KEYS))).toContain(PROGRESS_FILE);
  expect(existsSync(join(dir, `${STORE_FILE}-wal`))).toBe(false);
  await expect(open(dir)).rejects.toThrow("npx parley-gateway store recover");
  rmSync(join(dir, PROGRESS_FILE), { recursive: true });
  const { kept } = await recovered(dir);
  expect(readdirSync(kept)).toContain(`${STORE_FILE}-mark`);
  expect(existsSync(join(dir, `${STORE_FILE}-mark`))).toBe(false);
  await (await open(dir)).close();
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
