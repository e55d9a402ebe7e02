// Run as a process of its own: makes the transactions of `power-steps.ts` on a store, with its readable copies,
// until it is killed. After each one that the store has confirmed it writes the number of it into a file.

import { openSync, writeSync } from "node:fs";
import { insertRun } from "../../src/store/queries/runs/runs.ts";
import {
  deleteSessionRows,
  insertSession,
  replaceSessionId,
} from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store, Tx } from "../../src/store/sql.ts";
import { openJsonlCopies } from "../../src/store/sqlite/jsonl-copies.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { sampleRun, sampleSession, silentLog, userMessage } from "../store/samples.ts";
import { type PowerStep, powerStep } from "./power-steps.ts";
import { plainRedactor } from "./redactor.ts";

const WORDS = "what people say to each other in the course of a day, and machines in a second; ".repeat(
  1_000,
);

/** Begins a session anew. Returns the transcripts that went with the old one. */
async function renew(tx: Tx, step: PowerStep, sessionId: string, isNew: boolean): Promise<readonly string[]> {
  const { key, deletes } = step;
  const deleted = !isNew && deletes ? await deleteSessionRows(tx, key, { transcripts: true }) : [];
  if (isNew || deletes) await insertSession(tx, sampleSession({ key, sessionId }));
  else await replaceSessionId(tx, key, sessionId, 1_000);
  // As in a gateway there is no transcript without a run.
  await insertRun(tx, sampleRun({ runId: `run-${sessionId}`, sessionKey: key, sessionId, state: "ok" }));
  return deleted;
}

/** Makes one transaction. Returns the transcripts that it deleted. */
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

const [dir = "", durability = "full", seed = "", ackFile = ""] = process.argv.slice(2);
const ack = openSync(ackFile, "a+");
writeSync(ack, "opening\n");
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
  writeSync(ack, `${number}\n`);
  if (step.renewedAs !== undefined) current.set(step.key, step.renewedAs);
  for (const sessionId of deleted) void jsonlCopies.remove(sessionId);
  jsonlCopies.note(current.get(step.key) ?? "");
  // The copies are written beside the next transactions, as in a gateway.
  if (number % 4 === 0) await new Promise((resolve) => setImmediate(resolve));
}
