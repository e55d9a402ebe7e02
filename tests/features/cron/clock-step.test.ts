// Corrects a clock that was days ahead. Planned work must not wait until the time of the wrong clock.

import { expect, test, vi } from "vitest";
import { ClockWatch } from "../../../src/app/clock-watch.ts";
import type { Channel, DeliveryOutcome } from "../../../src/channels/channel.ts";
import { OutboxWorker } from "../../../src/channels/outbound.ts";
import type { DeadlineHandler } from "../../../src/engine/deadlines.ts";
import { getJob, insertTurn, moveJob } from "../../../src/features/cron/store.ts";
import { INBOUND_DEADLINE } from "../../../src/flows/delivery/inbound-files.ts";
import {
  type DeliveryClass,
  insertDelivery,
  listDeliveries,
} from "../../../src/store/queries/channels/deliveries.ts";
import { joinProcesses } from "../../../src/store/queries/processes.ts";
import { cleanup, openTestEngine } from "../../kit/engine/engine.ts";
import { PATIENCE_MS } from "../../kit/until.ts";
import { settableWorld } from "../../kit/world.ts";
import { settingsWith } from "../../tools/app.ts";
import { add, turnsOf } from "./kit.ts";

const DAY_MS = 86_400_000;

/** Opens an app with an outbox on one channel. `says` returns the outcome of each attempt. */
async function open(says: () => DeliveryOutcome, of: DeliveryClass = "texts") {
  const { world, set } = settableWorld();
  const fired: string[] = [];
  const burst: DeadlineHandler = async (_, key) => {
    fired.push(key);
    return "done";
  };
  const { engine, store } = await openTestEngine({
    world,
    execute: async () => {
      throw new Error("no run is made here");
    },
    deadlineHandlers: new Map([[INBOUND_DEADLINE, burst]]),
  });
  const app = { engine, store, settings: settingsWith({}) };
  const channel: Channel = { id: "pigeon", deduplicates: true, deliver: async () => says() };
  const parts = { db: store.db, commit: engine.commit, channels: new Map([["pigeon", channel]]), world };
  const outbox = new OutboxWorker({
    ...parts,
    owner: engine.processId,
    of,
    lookAtDates: () => engine.lookAtDates(),
  });
  engine.attach(outbox);
  const watch = new ClockWatch({
    engine,
    world,
    settings: app.settings,
  });
  cleanup(() => outbox.stop());
  cleanup(() => watch.stop());
  const queue = (id: string): Promise<void> =>
    engine.commit(async (unit) => {
      const route = { channel: "pigeon", to: "roof" };
      const row = {
        id,
        sessionKey: "agent:main:main",
        kind: of === "hooks" ? "hook" : "send",
        route,
        text: id,
        state: "pending",
      } as const;
      await insertDelivery(unit.tx, { ...row, createdAt: unit.now });
      unit.lookAtDates();
    });
  const states = async () => (await listDeliveries(store.db, { limit: 10 })).rows.map(({ state }) => state);
  const settle = async (ms: number): Promise<void> => {
    await world.advance(ms);
    for (let turn = 0; turn < 50; turn += 1) await world.advance(0);
  };
  /** Waits in real time, because the database needs real time although the clock is fake. */
  const soon = (look: () => Promise<void>): Promise<void> =>
    vi.waitFor(() => world.advance(0).then(look), { timeout: PATIENCE_MS, interval: 1 });
  return { app, set, outbox, watch, queue, states, settle, soon, fired };
}

test("damage: if the clock is set back, deliveries and bursts of messages are not delayed", async () => {
  let answer: DeliveryOutcome = { kind: "retry", error: "away" };
  const { app, set, outbox, watch, queue, states, settle, soon, fired } = await open(() => answer);
  const { engine } = app;
  await watch.start();
  await outbox.start();
  set(3 * DAY_MS);
  await settle(5_000);
  await queue("one");
  const dueAt = engine.now() + 60_000;
  await engine.commit((unit) => unit.setDeadline({ kind: INBOUND_DEADLINE, key: "burst", dueAt }));
  await settle(0);
  expect(await states()).toEqual(["pending"]);
  answer = { kind: "sent" };
  set(-3 * DAY_MS);
  await settle(10_000);
  await soon(async () => expect(await states()).toEqual(["sent"]));
  expect(fired).toEqual([]);
  await settle(60_000);
  await soon(async () => expect(fired).toEqual(["burst"]));
});

test("damage: if the clock of several gateways is set back, only the oldest one moves the dates", async () => {
  let answer: DeliveryOutcome = { kind: "retry", error: "away" };
  const { app, set, outbox, watch, queue, states, settle, soon } = await open(() => answer);
  const { engine, store } = app;
  const facts = { host: "h", version: "1" };
  await store.transaction(async (tx) => {
    await joinProcesses(tx, { ...facts, processId: engine.processId }, engine.now());
    await joinProcesses(tx, { ...facts, processId: "older" }, engine.now() - 1);
  });
  await watch.start();
  await outbox.start();
  const stepBack = async (): Promise<void> => {
    set(3 * DAY_MS);
    await settle(5_000);
    set(-3 * DAY_MS);
    await settle(10_000);
  };
  set(3 * DAY_MS);
  await settle(5_000);
  await queue("one");
  await settle(0);
  answer = { kind: "sent" };
  set(-3 * DAY_MS);
  await settle(10_000);
  expect(await states()).toEqual(["pending"]);
  await store.transaction(async (tx) => {
    await tx.deleteFrom("processes").where("process_id", "=", "older").execute();
  });
  await stepBack();
  await soon(async () => expect(await states()).toEqual(["sent"]));
});

test("damage: if the clock is set back, a webhook's receiver that failed is not left alone", async () => {
  let answer: DeliveryOutcome = { kind: "retry", error: "away" };
  const { set, outbox, watch, queue, states, settle, soon } = await open(() => answer, "hooks");
  await watch.start();
  await outbox.start();
  set(3 * DAY_MS);
  await settle(5_000);
  await queue("one");
  await settle(0);
  expect(await states()).toEqual(["pending"]);
  answer = { kind: "sent" };
  set(-3 * DAY_MS);
  await settle(10_000);
  await soon(async () => expect(await states()).toEqual(["sent"]));
});

test("damage: if the clock is set back while no gateway runs, deliveries are not delayed", async () => {
  let answer: DeliveryOutcome = { kind: "retry", error: "away" };
  const { set, outbox, watch, queue, states, settle, soon } = await open(() => answer);
  set(3 * DAY_MS);
  await outbox.start();
  await queue("one");
  await settle(0);
  set(-3 * DAY_MS);
  answer = { kind: "sent" };
  await settle(60_000);
  expect(await states()).toEqual(["pending"]);
  // Starts a new watch, as a new process does.
  await watch.start();
  await settle(5_000);
  await soon(async () => expect(await states()).toEqual(["sent"]));
});

test("damage: jobs that ran too early because of a wrong clock do not run again, and other due times are recomputed", async () => {
  const { app, set, watch, settle, soon } = await open(() => ({ kind: "sent" }));
  await watch.start();
  const { engine, store } = app;
  const job = await add(app, { schedule: { kind: "cron", expr: "0 9 * * *", tz: "UTC" } });
  const first = (await getJob(store.db, job.id))?.nextAt ?? 0;
  // Stores the state that a clock four days ahead leaves: the first due time was handled late, and the fifth
  // is planned.
  await engine.commit(async (unit) => {
    await insertTurn(unit.tx, { jobId: job.id, dueAt: first, firedAt: unit.now, cause: "late" });
    await moveJob(unit.tx, job.id, first + 4 * DAY_MS);
  });
  set(4 * DAY_MS);
  await settle(5_000);
  set(-4 * DAY_MS);
  await settle(5_000);
  await soon(async () => expect((await getJob(store.db, job.id))?.nextAt).toBe(first + DAY_MS));
  expect(await turnsOf(app, job)).toHaveLength(1);
});
