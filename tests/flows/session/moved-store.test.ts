// A process crashes during its work, and the store is moved: a gateway on the new store continues the work.

import { join } from "node:path";
import { expect } from "vitest";
import { sharedWorld } from "../../../src/engine/cluster/shared-world.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import { backupStore, migrateStore, restoreStore } from "../../../src/store/transfer/transfer.ts";
import { both, share } from "../../kit/deep.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { type FlowApp, type FlowAppOptions, openFlowApp, type Play } from "../../kit/engine/flow-app.ts";
import * as checks from "../../kit/engine/flow-checks.ts";
import { silentLog } from "../../store/samples.ts";
import { emptyUrl, freshUrl, good, jobOn } from "../../store/transfer/moves.ts";
import { MAIN, RESEARCH, turns } from "../conversation/asking.ts";

/**
 * Main asks research and waits. Then both exchange reply turns, and research announces. Other messages are
 * repeated.
 */
const speaks =
  (name: string): Play =>
  async (actor) => {
    if (actor.input === "go") return `${name} got ${(await actor.send(RESEARCH, "the question", 30)).status}`;
    if (actor.step === "message") return `${name} heard ${actor.input}`;
    return actor.step === "announce" ? `${name} announces` : `${name} says ${actor.handle.run.flow?.turn}`;
  };

const SCENARIO: Pick<FlowAppOptions, "plays" | "choices"> = {
  plays: { [MAIN]: speaks("main"), [RESEARCH]: speaks("research") },
  choices: turns(2),
};

const embedded = (dir: string): Promise<Store> => openSqlite({ dir, durability: "normal", log: silentLog });

async function onDatabase(url: string): Promise<Store> {
  const store = await openPostgres({ url, world: quietWorld() });
  cleanup(() => store.close());
  return store;
}

/**
 * Starts a run of main, with queued messages behind it, until the process crashes at a commit. Returns the
 * accepted runs.
 */
async function dieAt(commit: number, disk: Store): Promise<string[]> {
  const retry = { kind: "retry", error: "nobody answers" } as const;
  const options = { ...SCENARIO, disk, dies: true, channel: () => retry, maxConcurrent: 1 };
  const crash = { commit, when: commit % 2 === 0 ? "before" : "after" } as const;
  const app: FlowApp = await openFlowApp({ ...options, world: sharedWorld(disk, quietWorld()), crash });
  const accepted: string[] = [];
  const begin = async (): Promise<void> => {
    await app.route(MAIN, RESEARCH);
    for (const [key, text] of [
      [MAIN, "go"],
      [MAIN, "one"],
      [RESEARCH, "two"],
      [MAIN, "three"],
    ] as const) {
      await app.tell(key, text, { runId: text });
      accepted.push(text);
    }
  };
  // A message without an answer may be lost.
  await begin().catch(() => {});
  await app.crashed();
  return accepted;
}

async function expectFinished(app: FlowApp, accepted: readonly string[]): Promise<void> {
  await app.quiet();
  const { db } = app.store;
  await checks.checkRuns(db, accepted);
  await checks.checkFlows(db);
  await checks.checkDeliveries(db);
  await checks.checkTold(db);
  await checks.checkTranscripts(db);
  await checks.checkChains(db, { maxHops: 16, maxChainRuns: 200 });
  const runs = [...(await app.runs(MAIN)), ...(await app.runs(RESEARCH))];
  expect(runs.filter((run) => run.state !== "ok")).toEqual([]);
  const replies = runs.map((run) => run.reply).filter((reply) => reply?.includes("heard"));
  expect(new Set(replies).size).toBe(replies.length);
  expect(app.sent.map((message) => message.text)).toEqual(
    accepted.length === 0 ? [] : ["research announces"],
  );
}

/** Numbers of commits between the acceptance of the first message and the announcement. */
const COMMITS = share([9, 18], [6, 12, 15, 21, 24]);

both.each(COMMITS)(
  "after a crash at commit %i on the embedded store, work continues on PostgreSQL",
  async (commit) => {
    const dir = temporaryFolder();
    const accepted = await dieAt(commit, await embedded(dir));
    const url = await freshUrl();
    good(await migrateStore(jobOn(dir), url));
    const disk = await onDatabase(url);
    const app = await openFlowApp({ ...SCENARIO, disk, world: sharedWorld(disk, quietWorld()) });
    await expectFinished(app, accepted);
  },
);

both.each(COMMITS)(
  "after a crash at commit %i on PostgreSQL, work continues on the embedded store",
  async (commit) => {
    const url = await emptyUrl();
    const accepted = await dieAt(commit, await onDatabase(url));
    const [file, dir] = [join(temporaryFolder(), "backup.sqlite"), temporaryFolder()];
    good(await backupStore(jobOn({ url }), file));
    good(await restoreStore(jobOn(dir), file));
    const disk = await embedded(dir);
    cleanup(() => disk.close());
    const app = await openFlowApp({ ...SCENARIO, disk });
    await expectFinished(app, accepted);
  },
);
