// Runs in a separate process: opens the store in a folder and prints each result to stdout as a line of JSON.
// `hold`: keeps it open until killed. `fill`: writes until the disk is full, then frees some space and writes
// again.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { StoreProblem } from "../../../src/store/problems.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { watchWrites } from "../../../src/store/write-watch.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { silentLog, userMessage } from "../samples.ts";

function say(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function problemOf(error: unknown): object {
  if (!(error instanceof StoreProblem)) return { error: String(error) };
  return { problem: error.problem, place: error.place, message: error.message };
}

async function write(store: Store, id: string): Promise<void> {
  const entry = userMessage(id, `word ${"x".repeat(20_000)}`);
  await store.transaction((tx) => appendEntry(tx, { sessionKey: "k", sessionId: "s", entry }, plainRedactor));
}

async function fill(store: Store, ballast: string): Promise<void> {
  let written = 0;
  try {
    for (; written < 10_000; written++) await write(store, `m${written}`);
  } catch (error) {
    say({ written, ...problemOf(error), refusal: await store.refusal?.() });
  }
  const count = async () => (await store.db.selectFrom("messages").select("id").execute()).length;
  say({ kept: await count() });
  rmSync(ballast);
  say({ refusal: (await store.refusal?.()) ?? "none" });
  await write(store, "after");
  say({ kept: await count() });
}

const [dir = "", action = "hold"] = process.argv.slice(2);
try {
  const store = watchWrites(await openSqlite({ dir, durability: "full", log: silentLog }));
  await store.transaction((tx) =>
    tx
      .insertInto("chains")
      .values({ chain_id: `pid-${process.pid}`, runs: 1 })
      .execute(),
  );
  say({ opened: process.pid });
  if (action === "fill") await fill(store, join(dir, "ballast"));
  // Keeps a reference to the store, because garbage collection closes an unreferenced store.
  else process.stdin.resume().once("end", () => void store.close());
} catch (error) {
  say(problemOf(error));
}
