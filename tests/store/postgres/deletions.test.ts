// Two processes with one database delete forks that share a transcript at the same time.

import { expect, test } from "vitest";
import { holdForAbort, holdForDeletion, holdSessions } from "../../../src/store/locks.ts";
import { deleteSessionRows, insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import { linkFork } from "../../../src/store/queries/transcripts/forks.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { openPostgresStore, runSql } from "../../kit/store/postgres.ts";
import { until } from "../../kit/until.ts";
import { sampleSession, userMessage } from "../samples.ts";

const ORIGIN = "agent:main:origin";
const FORKS = ["m1", "m2", "m3"].map((at) => ({ at, key: `${ORIGIN}:fork:${at}`, sessionId: `fork-${at}` }));

test("of two deletions of forks at once, the later one deletes the messages that only these two shared", async () => {
  const { store, url, schema, dispose } = await openPostgresStore();
  cleanup(dispose);
  const place = { sessionKey: ORIGIN, sessionId: "origin" };
  await store.transaction(async (tx) => {
    await insertSession(tx, sampleSession({ key: ORIGIN, sessionId: "origin" }));
    for (const { at } of FORKS)
      await appendEntry(tx, { ...place, entry: userMessage(at, "said") }, plainRedactor);
    for (const { at, key, sessionId } of FORKS) {
      await insertSession(tx, sampleSession({ key, sessionId }));
      await linkFork(tx, sessionId, { from: "origin", at });
    }
  });
  const remove = (key: string, last = Promise.resolve()) =>
    store.transaction(async (tx) => {
      await holdForDeletion(tx, key, []);
      await deleteSessionRows(tx, key, { transcripts: true });
      deleted.push(key);
      await last;
    });
  const deleted: string[] = [];
  await remove(ORIGIN);
  const [, two, three] = FORKS.map(({ key }) => key) as [string, string, string];
  const commit = Promise.withResolvers<void>();
  const first = remove(two, commit.promise);
  await until(() => deleted.includes(two));
  const second = remove(three);
  const waiting = `select 1 from pg_locks w join pg_locks h on h.pid = w.pid join pg_class c on c.oid = h.relation
    where not w.granted and c.relnamespace = '${schema}'::regnamespace`;
  await until(async () => deleted.includes(three) || (await runSql(url, waiting)).length > 0);
  commit.resolve();
  await Promise.all([first, second]);
  const left = await store.db.selectFrom("messages").select("id").execute();
  expect(left).toEqual([{ id: "m1" }]);
});

test("an abort and a deletion wait for no sub-agent whose job has ended", async () => {
  const { store, dispose } = await openPostgresStore();
  cleanup(dispose);
  const child = "agent:main:subagent:1";
  await store.transaction(async (tx) => {
    await insertSession(tx, sampleSession({ key: ORIGIN, sessionId: "origin" }));
    await insertSession(tx, sampleSession({ key: child, sessionId: "child", spawnedBy: ORIGIN }));
  });
  const held = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const other = store.transaction(async (tx) => {
    await holdSessions(tx, [child]);
    held.resolve();
    await over.promise;
  });
  await held.promise;
  await store.transaction((tx) => holdForAbort(tx, ORIGIN));
  await store.transaction((tx) => holdForDeletion(tx, ORIGIN, []));
  over.resolve();
  await other;
});
