// `store.retention`: the records of old chains are deleted in small steps, on both databases.

import { expect, test } from "vitest";
import { createOldRowsCleanup } from "../../src/app/old-rows.ts";
import { USAGE_GROUPS } from "../../src/core/shapes/usage.ts";
import { insertMark } from "../../src/store/queries/runs/inbox-marks.ts";
import { usageBy } from "../../src/store/queries/runs/ledger.ts";
import { getRun } from "../../src/store/queries/runs/runs.ts";
import type { Store } from "../../src/store/sql.ts";
import { openStoreOn, quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { untilQuiet } from "../kit/store/store-view.ts";
import { doing, sending, spawning, talkingModel } from "../kit/talking-model.ts";
import { agentSettings } from "../tools/app.ts";
import { openHouse } from "./kit.ts";

const DAY_MS = 86_400_000;
const PRUNED = ["chains", "runs", "flows", "waits", "refusals", "deliveries"] as const;

async function open(kind: Store["kind"], retention?: number) {
  const dir = temporaryFolder();
  const real = quietWorld();
  let laterMs = 0;
  const world = { ...real, clock: { ...real.clock, now: () => real.clock.now() + laterMs } };
  const house = await openHouse({
    ...{ dir, world, model: talkingModel(), disk: await openStoreOn(kind, dir, world) },
    choices: {
      agents: [agentSettings("main"), agentSettings("research")],
    },
  });
  const { db } = house.store;
  const store = { ...house.settings.store, ...(retention === undefined ? {} : { retention }) };
  const client = await house.client();
  const forget = createOldRowsCleanup({ ...house.settings, store });
  return {
    house,
    client,
    db,
    say: async (message: string): Promise<string> => {
      const { runId } = await client.request("chat.send", { sessionKey: "agent:main:work", message });
      await client.request("agent.wait", { runId });
      await untilQuiet(db);
      return runId;
    },
    archive: () =>
      house.store.transaction((tx) =>
        tx.updateTable("sessions").set({ archived_at: 1 }).where("spawned_by", "is not", null).execute(),
      ),
    /** Lets time pass, and as many steps. */
    prune: async (days: number, steps = 1): Promise<void> => {
      laterMs = days * DAY_MS;
      for (let step = 0; step < steps; step += 1) await house.engine.commit((unit) => forget(unit, "chains"));
    },
    counts: async () => {
      const rows = PRUNED.map(async (table) => (await db.selectFrom(table).selectAll().execute()).length);
      return Promise.all(rows);
    },
  };
}

const TALK = doing(sending("agent:research:main", "what do you know?"), spawning("count the files"));

test.each(["sqlite", "postgres"] as const)(
  "%s: the records of a chain go after the days, and its transcripts and its usage stay",
  async (kind) => {
    const stage = await open(kind, 90);
    await stage.say(TALK);
    await stage.archive();
    const before = await stage.counts();
    const messages = await stage.db.selectFrom("messages").select("id").execute();
    const usage = async () =>
      Promise.all(USAGE_GROUPS.map((by) => usageBy(stage.db, { by, since: 0, order: "tokens", limit: 50 })));
    const used = await usage();
    expect(used.every((lines) => lines.length > 0 && lines.every(({ name }) => name !== ""))).toBe(true);
    await stage.prune(89);
    expect(await stage.counts()).toEqual(before);
    await stage.prune(91);
    expect(await stage.counts()).toEqual([0, 0, 0, 0, 0, 0]);
    expect(await stage.db.selectFrom("messages").select("id").execute()).toEqual(messages);
    expect(await usage()).toEqual(used);
    expect(
      (await stage.client.request("chat.history", { sessionKey: "agent:main:work" })).messages,
    ).not.toEqual([]);
    await stage.say("hello again");
  },
);

test("with one day, agent.wait still tells the end of a run after 23 hours", async () => {
  const { say, prune, client } = await open("sqlite", 1);
  const runId = await say("hello");
  await prune(23 / 24);
  expect(await client.request("agent.wait", { runId })).toMatchObject({ status: "ok" });
});

test("PN1: a chain stays while a run of it is unfinished or a message of it is unread in an inbox", async () => {
  const { say, prune, db, house } = await open("sqlite", 90);
  const [unread, unfinished] = [await say("one"), await say("two")];
  await say("three");
  await house.store.transaction(async (tx) => {
    const { sessionId } = (await getRun(tx, unread)) ?? { sessionId: "" };
    await insertMark(tx, { runId: unread, sessionKey: "agent:main:work", sessionId }, {});
    await tx.updateTable("runs").set({ ended_at: null }).where("run_id", "=", unfinished).execute();
  });
  await prune(365);
  const left = await db.selectFrom("runs").select("run_id").execute();
  expect(left.map(({ run_id }) => run_id).sort()).toEqual([unread, unfinished].sort());
});

test("PN1: the record of a sub-agent stays until it is archived, so that its session still lists it", async () => {
  const { say, prune, archive, db } = await open("sqlite", 90);
  await say(doing(spawning("count the files")));
  const tasks = () => db.selectFrom("flows").select("request_text").execute();
  await prune(365);
  expect(await tasks()).toEqual([{ request_text: "count the files" }]);
  await archive();
  await prune(365);
  expect(await tasks()).toEqual([]);
});

test("a step deletes at most 100 chains", async () => {
  const { house, prune, db } = await open("sqlite", 90);
  await house.store.transaction(async (tx) => {
    for (let n = 0; n < 250; n += 1)
      await tx
        .insertInto("chains")
        .values({ chain_id: `c${n}`, runs: 0, root_session_key: null, last_at: 1 })
        .execute();
  });
  const left: number[] = [];
  for (let step = 1; step <= 3; step += 1) {
    await prune(0);
    left.push((await db.selectFrom("chains").select("chain_id").execute()).length);
  }
  expect(left).toEqual([150, 50, 0]);
});

test("old rows are deleted in pieces: the next piece follows after a second, until none is left", async () => {
  const { house } = await open("sqlite");
  const forget = createOldRowsCleanup(house.settings);
  await house.store.transaction(async (tx) => {
    for (let n = 0; n < 6_000; n += 1)
      await tx
        .insertInto("revisions")
        .values({ hash: `h${n}`, kind: "run", body_json: "{}", created_at: 1, used_at: 1 })
        .execute();
  });
  const step = () =>
    house.engine.commit(async (unit) => {
      const next = await forget(unit, "records");
      const left = await unit.tx.selectFrom("revisions").select("hash").where("used_at", "=", 1).execute();
      return { left: left.length, afterMs: next === "done" ? next : next - unit.now };
    });
  expect(await step()).toEqual({ left: 1_000, afterMs: 1_000 });
  expect(await step()).toEqual({ left: 0, afterMs: 6 * 3_600_000 });
});
