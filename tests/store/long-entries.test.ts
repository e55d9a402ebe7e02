// Long transcript entries are written in several steps. Each is stored completely or not at all.

import { cpSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Message } from "../../src/core/shapes/message.ts";
import { insertSession } from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import { searchTranscripts } from "../../src/store/queries/transcripts/transcript-search.ts";
import { readHistory } from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store } from "../../src/store/sql.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { sampleSession, silentLog, temporaryDir, userMessage } from "./samples.ts";

const KEY = "agent:main:main";
let parent: string;
let remove: () => void;
beforeEach(() => {
  ({ dir: parent, remove } = temporaryDir());
});
afterEach(() => remove());

/** Returns a fake clock that makes every query look long enough for a pause after it. */
function slowClock() {
  let ms = 0;
  return {
    now: () => 0,
    monotonic: () => {
      ms += 10;
      return ms;
    },
    at: () => ({ cancel: () => {} }),
    after: () => ({ cancel: () => {} }),
  };
}

const append = (store: Store, entries: readonly Message[]) =>
  store.transaction(async (tx) => {
    await insertSession(tx, sampleSession({ key: KEY, sessionId: "s" }));
    for (const entry of entries)
      await appendEntry(tx, { sessionKey: KEY, sessionId: "s", entry }, plainRedactor);
  });

async function found(store: Store, query: string): Promise<number> {
  const asked = { query, scope: { all: true }, redactor: plainRedactor, limit: 5 } as const;
  return (await searchTranscripts(store.db, asked)).hits.length;
}

test("I2: if the process is killed during the write of a long entry, none of it is stored; after the commit, all of it is", async () => {
  const dir = join(parent, "store");
  const copies: string[] = [];
  let writing = false;
  const gather = async (): Promise<void> => {
    if (!writing) return;
    const to = join(parent, `copy-${copies.length}`);
    cpSync(dir, to, { recursive: true, filter: (from) => !basename(from).startsWith("gateway.lock") });
    copies.push(to);
  };
  const store = await openSqlite({ dir, durability: "full", log: silentLog, clock: slowClock(), gather });
  writing = true;
  const text = Array.from({ length: 40_000 }, (_, at) => `w${at}`).join(" ");
  await append(store, [userMessage("long", text)]);
  writing = false;
  await store.close();
  const left: number[][] = [];
  for (const copy of copies) {
    const killed = await openSqlite({ dir: copy, durability: "full", log: silentLog });
    const rows = await killed.db.selectFrom("messages").select("id").execute();
    left.push([rows.length, await found(killed, "w3"), await found(killed, "w39999 w1")]);
    await killed.close();
  }
  expect(left.length).toBeGreaterThan(5);
  expect(left.at(-1)).toEqual([1, 1, 1]);
  expect(left.slice(0, -1)).toEqual(left.slice(1).map(() => [0, 0, 0]));
});

test("T3: a page of large messages is read in parts, and other work runs between them", async () => {
  const store = await openSqlite({ dir: join(parent, "store"), durability: "normal", log: silentLog });
  const messages = Array.from({ length: 6 }, (_, at) => userMessage(`m${at}`, `${at}`.repeat(600_000)));
  await append(store, messages);
  for (const way of [{}, { from: "m0" }]) {
    let turns = 0;
    const pace = async (): Promise<void> => {
      turns += 1;
    };
    const wanted = { sessionId: "s", limit: 50, includeTools: true, pace, ...way };
    const page = await readHistory(store.db, wanted);
    expect(page.ok && page.value.messages).toEqual(messages);
    expect(turns).toBe(6);
  }
  await store.close();
});
