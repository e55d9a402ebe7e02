// Runs as a separate process. Executes the transactions of `steps.ts` on a store with JSONL copies until it
// is killed, and reads the store at the same time. It writes the number of each transaction that the store
// has confirmed or shown into one file. After each sync of the log, it writes the number of frames at the
// beginning of that sync into another file.

import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { insertRun } from "../../../src/store/queries/runs/runs.ts";
import {
  deleteSessionRows,
  insertSession,
  replaceSessionId,
} from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { Db, Store, Tx } from "../../../src/store/sql.ts";
import { openJsonlCopies } from "../../../src/store/sqlite/jsonl-copies.ts";
import { openSqlite, STORE_FILE } from "../../../src/store/sqlite/sqlite.ts";
import { sampleRun, sampleSession, silentLog, userMessage } from "../../store/samples.ts";
import { plainRedactor } from "../redactor.ts";
import { watchSyncs } from "../store/disk-sync.ts";
import { type PowerStep, powerStep } from "./steps.ts";
import { walIndexOf } from "./wal-index.ts";

/** Number of transactions before the reads begin, so that the store starts quickly. */
const READS_FROM = 8;
const WORDS = "what people say to each other in the course of a day, and machines in a second; ".repeat(
  1_000,
);

/** Resets or deletes a session. Returns the ids of the deleted transcripts. */
async function renew(tx: Tx, step: PowerStep, sessionId: string, isNew: boolean): Promise<readonly string[]> {
  const { key, deletes } = step;
  const deleted = !isNew && deletes ? await deleteSessionRows(tx, key, { transcripts: true }) : [];
  if (isNew || deletes) await insertSession(tx, sampleSession({ key, sessionId }));
  else await replaceSessionId(tx, key, sessionId, 1_000);
  // A transcript needs a run in the same way as in a gateway.
  await insertRun(tx, sampleRun({ runId: `run-${sessionId}`, sessionKey: key, sessionId, state: "ok" }));
  return deleted;
}

/** Executes one transaction. Returns the ids of the deleted transcripts. */
function make(store: Store, step: PowerStep, current: Map<string, string>): Promise<readonly string[]> {
  const { key, renewedAs, messages } = step;
  const sessionId = renewedAs ?? current.get(key) ?? "";
  return store.transaction(async (tx) => {
    const deleted = renewedAs === undefined ? [] : await renew(tx, step, sessionId, !current.has(key));
    for (const { id, chars } of messages) {
      await appendEntry(
        tx,
        { sessionKey: key, sessionId, entry: userMessage(id, WORDS.slice(0, chars)) },
        plainRedactor,
      );
    }
    return deleted;
  });
}

const [dir = "", durability = "full", seed = "", ackFile = "", syncFile = ""] = process.argv.slice(2);
const ack = openSync(ackFile, "a+");
writeSync(ack, "opening\n");
let told = 0;
function tell(number: number): void {
  if (number <= told) return;
  told = number;
  writeSync(ack, `${number}\n`);
}

const synced = openSync(syncFile, "a+");
const readIndex = walIndexOf(join(dir, STORE_FILE));
watchSyncs(() => {
  const { salts, frames } = readIndex();
  const round = salts.map((salt) => salt.toString(16).padStart(8, "0")).join("");
  return () => writeSync(synced, `${round} ${frames}\n`);
});

/** Records the newest transaction that a read has returned. */
async function read(db: Db): Promise<void> {
  const newest = db.selectFrom("messages").select("id").orderBy("seq", "desc").limit(1);
  const id = (await newest.executeTakeFirst())?.id ?? "";
  tell(Number(/^m(\d+)-/.exec(id)?.[1] ?? 0));
}

async function readOn(db: Db | undefined): Promise<void> {
  for (; db !== undefined; ) {
    await read(db);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const store = await openSqlite({
  dir,
  durability: durability === "full" ? "full" : "normal",
  log: silentLog,
});
const jsonlCopies = openJsonlCopies({ dir, log: silentLog, db: store.db });
const current = new Map<string, string>();
for (let number = 1; ; number += 1) {
  const step = powerStep(seed, number);
  const deleted = await make(store, step, current);
  tell(number);
  if (number === READS_FROM) for (const db of [store.db, store.readWorker]) void readOn(db);
  if (step.renewedAs !== undefined) current.set(step.key, step.renewedAs);
  for (const sessionId of deleted) void jsonlCopies.remove(sessionId);
  jsonlCopies.note(current.get(step.key) ?? "");
  // Gives the JSONL copies time to be written during the next transactions, as in a gateway.
  if (number % 4 === 0) await new Promise((resolve) => setImmediate(resolve));
}
