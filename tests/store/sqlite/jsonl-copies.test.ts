import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isObject, ownJson } from "../../../src/core/json.ts";
import type { Entry } from "../../../src/core/shapes/message.ts";
import { insertRun } from "../../../src/store/queries/runs/runs.ts";
import { deleteSessionRows, insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import { linkFork } from "../../../src/store/queries/transcripts/forks.ts";
import type { Store } from "../../../src/store/sql.ts";
import { type JsonlCopies, openJsonlCopies } from "../../../src/store/sqlite/jsonl-copies.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import {
  assistantMessage,
  keptLog,
  sampleRun,
  sampleSession,
  silentLog,
  temporaryDir,
  userMessage,
} from "../samples.ts";

const KEY = "agent:main:main";
const ID = "session-1";
const HEADER = { type: "session", version: 1, id: ID, key: KEY, createdAt: 1_000 };

let dir: string;
let remove: () => void;
let store: Store;
let jsonlCopies: JsonlCopies;
let log: ReturnType<typeof keptLog>;

beforeEach(async () => {
  ({ dir, remove } = temporaryDir());
  store = await openSqlite({ dir, durability: "normal", log: silentLog });
  await store.transaction((tx) => insertSession(tx, sampleSession()));
  log = keptLog();
  jsonlCopies = openJsonlCopies({ dir, log, db: store.db });
});
afterEach(async () => {
  await jsonlCopies.flush();
  await store.close();
  remove();
});

const path = (): string => join(dir, `${ID}.jsonl`);

async function append(...entries: Entry[]): Promise<void> {
  await store.transaction(async (tx) => {
    for (const entry of entries)
      await appendEntry(tx, { sessionKey: KEY, sessionId: ID, entry }, plainRedactor);
  });
}

/**
 * Simulates a crash before the copy was written: entries are committed, but the copies' writer does not know
 * it.
 */
async function restart(): Promise<void> {
  await jsonlCopies.flush();
  jsonlCopies = openJsonlCopies({ dir, log, db: store.db });
  await jsonlCopies.flush();
}

function lines(): unknown[] {
  const text = readFileSync(path(), "utf8");
  expect(text.endsWith("\n")).toBe(true);
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("entries are written to the copy shortly after the commit, and at once if a caller waits", async () => {
  await jsonlCopies.flush();
  const world = fakeWorld();
  jsonlCopies = openJsonlCopies({ dir, log, db: store.db, clock: world.clock });
  await append(userMessage("m1", "first"));
  jsonlCopies.note(ID);
  const delayMs = await world.timerWithin(100);
  expect(lines()).toEqual([HEADER]);
  await world.advance(delayMs);
  await until(() => lines().length === 2);
  await append(userMessage("m2", "second"));
  jsonlCopies.note(ID);
  await jsonlCopies.flush();
  expect(lines()).toHaveLength(3);
});

test("when a transcript is removed, so are its JSONL copies that were saved under another name", async () => {
  await append(userMessage("m1", "stored"));
  jsonlCopies.note(ID);
  await jsonlCopies.flush();
  const ahead = [1, 2].map((number) => `${path()}.ahead-${number}`);
  for (const file of ahead) writeFileSync(file, readFileSync(path()));
  await jsonlCopies.remove(ID);
  for (const file of [path(), ...ahead]) expect(existsSync(file)).toBe(false);
});

test("the copy of a session without entries contains only a header, and only its owner can read it", async () => {
  await jsonlCopies.flush();
  expect(lines()).toEqual([HEADER]);
  expect(statSync(path()).mode & 0o777).toBe(0o600);
});

test("each entry is written as one line, in order and unchanged, whatever the entry contains", async () => {
  const entries: Entry[] = [
    userMessage("m1", "two\nlines\r\nand \u2028 more \u0000 \ud800"),
    assistantMessage("m2", "x".repeat(2_000_000)),
    { id: "c1", type: "compaction", summary: "s", firstKeptId: "m2", timestamp: 1 },
  ];
  for (const entry of entries) {
    await append(entry);
    jsonlCopies.note(ID);
  }
  await jsonlCopies.flush();
  expect(lines()).toEqual([HEADER, ...entries]);
});

/** Returns the lines of the copy that are valid JSON. */
function readableLines(): unknown[] {
  return readFileSync(path(), "utf8")
    .split("\n")
    .map(ownJson)
    .filter((value) => isObject(value));
}

test("a start completes a copy that a crash cut at any position, and leaves a cut line", async () => {
  const entries = [
    userMessage("m1", "a"),
    assistantMessage("m2", "y".repeat(50_000)),
    userMessage("m3", "ü\nb"),
  ];
  await append(...entries);
  jsonlCopies.note(ID);
  await jsonlCopies.flush();
  const whole = readFileSync(path());
  const cut = fc.oneof(
    fc.nat({ max: 600 }),
    fc.nat({ max: whole.length }),
    fc.integer({ min: whole.length - 300, max: whole.length }),
  );
  await fc.assert(
    fc.asyncProperty(cut, async (bytes) => {
      const left = whole.subarray(0, bytes);
      writeFileSync(path(), left);
      await restart();
      expect(readFileSync(path()).subarray(0, left.length).equals(left)).toBe(true);
      expect(readableLines()).toEqual([HEADER, ...entries]);
    }),
    { numRuns: 40 },
  );
});

test("a missing copy is written, and a transcript follows whole after an end that is not its own", async () => {
  await append(userMessage("m1", "a"));
  await restart();
  expect(lines()).toEqual([HEADER, userMessage("m1", "a")]);
  rmSync(path());
  await restart();
  expect(lines()).toEqual([HEADER, userMessage("m1", "a")]);
  for (const content of ["", "no JSON at all\n", '{"id":"m9"}\n', "\n\n", "[1]\nnull\n"]) {
    writeFileSync(path(), content);
    await restart();
    expect(readFileSync(path(), "utf8").startsWith(content)).toBe(true);
    expect(readableLines().slice(-2)).toEqual([HEADER, userMessage("m1", "a")]);
  }
});

test("the copy of a fork names its origin, and that of a deleted origin keeps only the shared messages", async () => {
  const fork = { key: `${KEY}:fork:1`, sessionId: "fork" };
  const shared = [userMessage("m1", "a"), userMessage("m2", "secret")];
  for (const message of shared) await append(message);
  await store.transaction(async (tx) => {
    await insertSession(tx, sampleSession(fork));
    await linkFork(tx, fork.sessionId, { from: ID, at: "m1" });
  });
  jsonlCopies.note(ID);
  jsonlCopies.note(fork.sessionId);
  await jsonlCopies.flush();
  const head = { type: "session", version: 1, id: "fork", key: fork.key, createdAt: 1_000 };
  const link = { forkedFrom: { sessionId: ID, messageId: "m1" } };
  expect(readFileSync(join(dir, "fork.jsonl"), "utf8")).toBe(`${JSON.stringify({ ...head, ...link })}\n`);
  expect(lines()).toEqual([HEADER, ...shared]);
  // A crash after this transaction leaves the old copy, which the next start writes again.
  const gone = await store.transaction((tx) => deleteSessionRows(tx, KEY, { transcripts: true }));
  await restart();
  expect(lines()).toEqual([{ ...HEADER, key: fork.key }, shared[0]]);
  for (const id of gone) await jsonlCopies.remove(id);
  expect(lines()).toEqual([{ ...HEADER, key: fork.key }, shared[0]]);
});

/** Makes two forks at the first and the last of three messages, and deletes their origin, which had a run. */
async function orphans(): Promise<readonly [string, string]> {
  const forks = [`${KEY}:fork:1`, `${KEY}:fork:2`] as const;
  await append(userMessage("m1", "a"), userMessage("m2", "b"), userMessage("m3", "c"));
  await store.transaction(async (tx) => {
    for (const [index, key] of forks.entries()) {
      await insertSession(tx, sampleSession({ key, sessionId: `fork-${index}` }));
      await linkFork(tx, `fork-${index}`, { from: ID, at: index === 0 ? "m1" : "m3" });
    }
  });
  await restart();
  await drop(KEY);
  expect(lines()).toHaveLength(4);
  return forks;
}

async function drop(key: string): Promise<void> {
  const gone = await store.transaction((tx) => deleteSessionRows(tx, key, { transcripts: true }));
  for (const id of gone) await jsonlCopies.remove(id);
}

test("a start removes the copies of a deleted session whose transcript is inherited, and writes one again", async () => {
  const heir = `${KEY}:fork:1`;
  await append(userMessage("m1", "a"));
  await store.transaction(async (tx) => {
    await insertSession(tx, sampleSession({ key: heir, sessionId: "fork" }));
    await linkFork(tx, "fork", { from: ID, at: "m1" });
  });
  await restart();
  writeFileSync(`${path()}.ahead-1`, readFileSync(path()));
  // The process ends between the commit and the removal of the copies.
  await store.transaction((tx) => deleteSessionRows(tx, KEY, { transcripts: true }));
  await restart();
  expect(lines()).toEqual([{ ...HEADER, key: heir }, userMessage("m1", "a")]);
  expect(existsSync(`${path()}.ahead-1`)).toBe(false);
});

test("the copy of an inherited transcript loses the messages that only a deleted fork shared, even after a crash", async () => {
  const [one, two] = await orphans();
  // The process ends between the commit and the removal of the copy.
  await store.transaction((tx) => deleteSessionRows(tx, two, { transcripts: true }));
  await restart();
  expect(lines()).toEqual([{ ...HEADER, key: one }, userMessage("m1", "a")]);
  expect(existsSync(`${path()}.ahead-1`)).toBe(false);
});

test("a start removes the copy of a deleted transcript, and keeps copies of sessions that were not deleted", async () => {
  await store.transaction((tx) => insertRun(tx, sampleRun({ sessionId: ID, sessionKey: KEY })));
  await append(userMessage("m1", "a secret"));
  jsonlCopies.note(ID);
  await jsonlCopies.flush();
  // A copy of another database. It may be the only remaining data of that database.
  const foreign = join(dir, "foreign.jsonl");
  const entry = JSON.stringify(userMessage("m9", "of another database"));
  writeFileSync(foreign, `${JSON.stringify({ ...HEADER, id: "foreign" })}\n${entry}\n`);
  await store.transaction((tx) => deleteSessionRows(tx, KEY, { transcripts: true }));
  await restart();
  expect(existsSync(path())).toBe(false);
  expect(existsSync(foreign)).toBe(true);
});

test("a copy that cannot be written is logged with its file name, and is written with the next entry", async () => {
  await jsonlCopies.flush();
  rmSync(path());
  mkdirSync(path());
  await restart();
  await append(userMessage("m1", "a"));
  jsonlCopies.note(ID);
  await jsonlCopies.flush();
  expect(log.lines.map(({ level, text }) => `${level}: ${text}`)).toContain(
    "warn: could not write a transcript copy",
  );
  expect(log.lines[0]?.fields).toMatchObject({ sessionId: ID, file: path() });
  rmSync(path(), { recursive: true });
  jsonlCopies.note(ID);
  await jsonlCopies.flush();
  expect(lines()).toEqual([HEADER, userMessage("m1", "a")]);
});

test("an id is never used as a path if it is not a plain file name", async () => {
  const sessionId = "../outside";
  await store.transaction((tx) => insertSession(tx, sampleSession({ key: "k", sessionId })));
  jsonlCopies.note(sessionId);
  await jsonlCopies.flush();
  await jsonlCopies.remove(sessionId);
  expect(existsSync(join(dir, "..", "outside.jsonl"))).toBe(false);
});
