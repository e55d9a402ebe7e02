// Imports sessions from database files that are open elsewhere, damaged, hostile, or of another version.

import {
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { AGENT, agentDatabase, open, run, STATE, said } from "./database.ts";
import { hashOf, START, sourceWith, Talk } from "./source.ts";
import { remark, stage } from "./stage.ts";

const ID = "11111111-1111-4111-8111-111111111111";
const MAIN = { key: "agent:main:main", sessionId: ID, events: [said("a", "hello"), said("b", "again", "a")] };
const UNREAD = "databases that were not read";

/** Returns a source with a session in files, which every import must keep. */
function withFiles(): string {
  const talk = new Talk();
  talk.user("in a file");
  const sessionId = "22222222-2222-4222-8222-222222222222";
  return sourceWith({
    agents: { main: { "agent:main:work": { sessionId, updatedAt: START } } },
    transcripts: { [`main/${sessionId}`]: talk.lines },
  });
}

test("sessions and transcripts of a database are imported, and a second import adds only what is new", async () => {
  const dir = withFiles();
  agentDatabase(dir, [{ ...MAIN, entry: { label: "The first", archivedAt: START } }]);
  const before = hashOf(dir);
  const { imported, said: heard, session } = await stage("embedded");
  expect((await imported(dir)).sessions.added).toBe(2);
  expect(hashOf(dir)).toBe(before);
  expect(await heard("agent:main:main")).toEqual(["person: hello", "person: again"]);
  expect(await heard("agent:main:work")).toEqual(["person: in a file"]);
  expect(await session("agent:main:main")).toMatchObject({
    sessionId: ID,
    label: "The first",
    archivedAt: START,
  });
  const event = JSON.stringify(said("c", "more", "b"));
  run(
    dir,
    AGENT,
    `insert into transcript_events (session_id, seq, event_json) values ('${ID}', 2, '${event}')`,
  );
  expect((await imported(dir)).sessions).toMatchObject({ toppedUp: 1, unchanged: 1 });
  expect(await heard("agent:main:main")).toEqual(["person: hello", "person: again", "person: more"]);
});

test("the chat of a session is read from the form of the newest version", async () => {
  const dir = sourceWith({});
  const context = { channel: "telegram", to: "telegram:-100", accountId: "work", threadId: 7 };
  const delivery = {
    kind: "external",
    route: {},
    context,
    origin: { provider: "telegram", label: "Family" },
  };
  agentDatabase(dir, [{ ...MAIN, entry: { delivery } }]);
  const { imported, session } = await stage("embedded");
  await imported(dir);
  expect((await session(MAIN.key))?.lastRoute).toEqual({
    channel: "telegram",
    to: "-100",
    accountId: "work",
    threadId: "7",
  });
});

test("a database that is open and locked elsewhere is read with its log, which no checkpoint has merged", async () => {
  const dir = withFiles();
  agentDatabase(dir, [MAIN]);
  const writer = open(dir, AGENT);
  writer.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0");
  const event = JSON.stringify(said("c", "from the log", "b"));
  writer.exec(`insert into transcript_events (session_id, seq, event_json) values ('${ID}', 2, '${event}')`);
  writer.exec("begin exclusive");
  const before = hashOf(dir);
  const { imported, said: heard } = await stage("embedded");
  await imported(dir);
  expect(hashOf(dir)).toBe(before);
  expect((await heard("agent:main:main")).at(-1)).toBe("person: from the log");
  writer.close();
});

test("a torn log loses only its last transaction", async () => {
  const dir = withFiles();
  agentDatabase(dir, [MAIN]);
  const writer = open(dir, AGENT);
  writer.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0");
  const insert = writer.prepare(
    "insert into transcript_events (session_id, seq, event_json) values (?, ?, ?)",
  );
  insert.run(ID, 2, JSON.stringify(said("c", "whole", "b")));
  const whole = readFileSync(join(dir, `${AGENT}-wal`)).length;
  insert.run(ID, 3, JSON.stringify(said("d", "torn", "c")));
  const torn = temporaryFolder();
  cpSync(dir, torn, { recursive: true });
  writer.close();
  rmSync(join(torn, `${AGENT}-shm`));
  truncateSync(join(torn, `${AGENT}-wal`), whole + 100);
  const { imported, said: heard } = await stage("embedded");
  await imported(torn);
  expect((await heard("agent:main:main")).at(-1)).toBe("person: whole");
});

test("compressed events are read; broken, huge, cyclic and unknown ones lose nothing else", async () => {
  const dir = withFiles();
  const events = [
    said("a", "first"),
    "{ not json",
    JSON.stringify(said("huge", "x".repeat(9 * 1024 * 1024), "a")),
    said("b", "second", "a"),
    { type: "mystery", id: "m", parentId: "b" },
    said("c", "in a circle", "d"),
    said("d", "last", "c"),
  ];
  agentDatabase(dir, [{ ...MAIN, events }]);
  const database = open(dir, AGENT);
  const insert = database.prepare(
    "insert into transcript_events (session_id, seq, event_zstd) values (?, ?, ?)",
  );
  insert.run(ID, 7, zstdCompressSync(Buffer.from(JSON.stringify(said("e", "compressed", "d")))));
  // Decompressed, this one would need 64 MB.
  insert.run(ID, 8, zstdCompressSync(Buffer.alloc(64 * 1024 * 1024)));
  insert.run(ID, 9, Buffer.from("no frame"));
  database.close();
  const { imported, said: heard } = await stage("embedded");
  const report = await imported(dir);
  const texts = ["first", "second", "in a circle", "last", "compressed"];
  expect(await heard("agent:main:main")).toEqual(texts.map((text) => `person: ${text}`));
  expect(remark(report, "are broken")?.count).toBe(1);
  expect(remark(report, "too long")?.count).toBe(3);
  expect(remark(report, "mystery")?.count).toBe(1);
  expect(remark(report, "missing parent")?.count).toBe(1);
});

test("a reset begins a new conversation, and a leaf continues an older entry", async () => {
  const dir = withFiles();
  const reset = { type: "reset", id: "r", parentId: "a" };
  const leaf = { type: "leaf", id: "l", parentId: "c", targetId: "b" };
  agentDatabase(dir, [
    { ...MAIN, events: [said("a", "before"), reset, said("b", "after", "r"), said("c", "left", "b"), leaf] },
  ]);
  const { imported, said: heard } = await stage("embedded");
  const report = await imported(dir);
  expect(await heard("agent:main:main")).toEqual(["person: after"]);
  expect(remark(report, "from before a reset")?.count).toBe(2);
});

test("further columns and tables, and sessions with broken entries, do not matter", async () => {
  const dir = withFiles();
  agentDatabase(dir, [MAIN], "create table mystery (x)");
  run(
    dir,
    AGENT,
    `alter table transcript_events add column more text;
     insert into session_nodes values ('agent:main:a', 'x', 'no json'), ('agent:main:b', 'x', '{}'), ('agent:main:c', 'x', '7')`,
  );
  const { imported, said: heard } = await stage("embedded");
  const report = await imported(dir);
  expect(await heard("agent:main:main")).toHaveLength(2);
  expect(remark(report, "that are not sessions")?.count).toBe(2);
  expect(remark(report, "without a sessionId")?.count).toBe(1);
});

const REFUSED: readonly [string, (dir: string) => void, string][] = [
  ["text instead of a database", (dir) => writeFileSync(join(dir, AGENT), "no database"), "damaged"],
  ["pages of another file", (dir) => damage(join(dir, AGENT)), "damaged"],
  ["a newer layout", (dir) => run(dir, AGENT, "pragma user_version = 24"), "layout 24 is newer"],
  ["no table of events", (dir) => run(dir, AGENT, "drop table transcript_events"), "do not have the tables"],
  ["a view instead of a table", (dir) => run(dir, AGENT, VIEW), "do not have the tables"],
  ["a table whose content is computed", (dir) => run(dir, AGENT, COMPUTED), "do not have the tables"],
  ["a link", (dir) => link(dir, AGENT), "a link"],
  ["a log that is a link", (dir) => link(dir, `${AGENT}-wal`), "a link"],
  ["a journal", (dir) => writeFileSync(join(dir, `${AGENT}-journal`), "x".repeat(600)), "left by a crash"],
];
const VIEW = "alter table session_nodes rename to other; create view session_nodes as select * from other";
const COMPUTED =
  "drop table session_nodes; create table session_nodes (session_key text, entry_json text " +
  "generated always as (hex(zeroblob(4000000))) virtual); insert into session_nodes values ('agent:main:main')";

function damage(file: string): void {
  const bytes = readFileSync(file);
  bytes.fill(0xa5, 100);
  writeFileSync(file, bytes);
}

function link(dir: string, path: string): void {
  const target = join(temporaryFolder(), "target");
  if (path === AGENT) renameSync(join(dir, path), target);
  else writeFileSync(target, "a log");
  symlinkSync(target, join(dir, path));
}

for (const [name, spoil, why] of REFUSED) {
  test(`a database file that is or has ${name} gives one remark and loses nothing else`, async () => {
    const dir = withFiles();
    agentDatabase(dir, [MAIN]);
    spoil(dir);
    const { imported, said: heard } = await stage("embedded");
    const report = await imported(dir);
    expect(report.sessions.added).toBe(1);
    expect(await heard("agent:main:work")).toEqual(["person: in a file"]);
    expect(report.remarks.filter(({ what }) => what.startsWith(UNREAD))).toMatchObject([
      { what: expect.stringContaining(why), count: 1, examples: [AGENT] },
    ]);
  });
}

test("a damaged shared database does not stop the import, and no copy stays behind", async () => {
  const dir = withFiles();
  agentDatabase(dir, [MAIN]);
  open(dir, STATE).close();
  writeFileSync(join(dir, STATE), "no database either");
  const copies = () => readdirSync(tmpdir()).filter((name) => name.startsWith("parley-import-"));
  const before = copies();
  const { imported } = await stage("embedded");
  const report = await imported(dir);
  expect(report.sessions.added).toBe(2);
  expect(remark(report, UNREAD)?.examples).toEqual([STATE]);
  expect(copies().filter((name) => !before.includes(name))).toEqual([]);
});
