// Stored deadlines that several processes see as due.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { DeadlineHandler } from "../../src/engine/deadlines.ts";
import { holdSessions } from "../../src/store/locks.ts";
import { cleanup, makeSessions, openTestEngine, temporaryFolder } from "../kit/engine/engine.ts";
import { until } from "../kit/until.ts";
import { fakeWorld } from "../kit/world.ts";

test("DD3: a process pauses before it looks again at a due deadline that another process handles", async () => {
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  cleanup(goOn.resolve);
  const slow: DeadlineHandler = async () => {
    begun.resolve();
    await goOn.promise;
    return "done";
  };
  const open = async (handler: DeadlineHandler) => {
    const world = fakeWorld();
    const execute = async () => ({ state: "ok" as const });
    const deadlineHandlers = new Map([["test", handler]]);
    return { world, ...(await openTestEngine({ world, execute, dir, on: "postgres", deadlineHandlers })) };
  };
  const dir = temporaryFolder();
  const one = await open(slow);
  await one.engine.commit((unit) => unit.setDeadline({ kind: "test", key: "it", dueAt: unit.now }));
  await begun.promise;
  const handled: string[] = [];
  const other = await open(async (_, key) => {
    handled.push(key);
    return "done";
  });
  const delays = () => other.world.pendingDelays();
  await until(() => delays().some((delay) => delay <= 1_000));
  expect(Math.min(...delays())).toBeGreaterThan(0);
  goOn.resolve();
  await until(async () => (await one.store.db.selectFrom("deadlines").selectAll().execute()).length === 0);
  expect(handled).toEqual([]);
});

test("a deadline's handler and a transaction that moves the deadline lock in the same order: session, deadline", async () => {
  const world = fakeWorld();
  const dir = temporaryFolder();
  const held = Promise.withResolvers<void>();
  let tries = 0;
  const handled: string[] = [];
  const handler: DeadlineHandler = async (unit) => {
    tries += 1;
    await held.promise;
    // Of two transactions that wait for each other, the database undoes one.
    await holdSessions(unit.tx, ["a"]);
    handled.push("it");
    return "done";
  };
  const execute = async () => ({ state: "ok" as const });
  const deadlineHandlers = new Map([["test", handler]]);
  const { engine, store } = await openTestEngine({ world, execute, dir, on: "postgres", deadlineHandlers });
  await makeSessions(store, "a");
  const due = { kind: "test", key: "it" };
  await engine.commit((unit) => unit.setDeadline({ ...due, dueAt: unit.now }));
  await until(() => tries === 1);
  const waiting = sql`select 1 from pg_locks w join pg_locks h on h.pid = w.pid
    join pg_class c on c.oid = h.relation
    where not w.granted and c.relnamespace = current_schema()::regnamespace`;
  const movedAt = world.clock.now() + 60_000;
  let moves = 0;
  await engine.commit(async (unit) => {
    moves += 1;
    await holdSessions(unit.tx, ["a"]);
    held.resolve();
    await until(async () => (await waiting.execute(store.db)).rows.length > 0);
    await unit.setDeadline({ ...due, dueAt: movedAt });
  });
  await until(() => handled.length > 0);
  // Waits for the end of the handler's transaction.
  await engine.stop(0);
  expect({ handled, moves }).toEqual({ handled: ["it"], moves: 1 });
  const left = await store.db.selectFrom("deadlines").select("due_at").execute();
  expect(left).toEqual([{ due_at: movedAt }]);
});

test("a deadline that is set to the same millisecond while its handler runs is handled again", async () => {
  const world = fakeWorld();
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const handled: string[] = [];
  const handler: DeadlineHandler = async (unit, key) => {
    handled.push(key);
    if (handled.length > 1) return "done";
    await unit.setDeadline({ ...due, dueAt: unit.now });
    begun.resolve();
    await released.promise;
    return "done";
  };
  const due = { kind: "test", key: "it" };
  const execute = async () => ({ state: "ok" as const });
  const deadlineHandlers = new Map([["test", handler]]);
  const { engine, store } = await openTestEngine({
    world,
    execute,
    dir: temporaryFolder(),
    deadlineHandlers,
  });
  await engine.commit((unit) => unit.setDeadline({ ...due, dueAt: unit.now }));
  await begun.promise;
  released.resolve();
  await until(async () => {
    await world.advance(1);
    return (await store.db.selectFrom("deadlines").selectAll().execute()).length === 0;
  });
  expect(handled).toEqual(["it", "it"]);
});

test("a deadline that is set again while its failing handler runs is not handled more often than each minute", async () => {
  const world = fakeWorld();
  let tries = 0;
  const handler: DeadlineHandler = async () => {
    tries += 1;
    if (tries === 1) await again.promise;
    throw new Error("planted");
  };
  const again = Promise.withResolvers<void>();
  const due = { kind: "test", key: "it" };
  const execute = async () => ({ state: "ok" as const });
  const deadlineHandlers = new Map([["test", handler]]);
  const dir = temporaryFolder();
  const { engine, store } = await openTestEngine({ world, execute, dir, on: "postgres", deadlineHandlers });
  await engine.commit((unit) => unit.setDeadline({ ...due, dueAt: unit.now }));
  await until(() => tries === 1);
  await engine.commit((unit) => unit.setDeadline({ ...due, dueAt: unit.now }));
  again.resolve();
  const dueAt = async () =>
    (await store.db.selectFrom("deadlines").select("due_at").executeTakeFirst())?.due_at;
  await until(async () => ((await dueAt()) ?? 0) > world.clock.now() + 1);
  expect({ tries, dueAt: await dueAt() }).toEqual({ tries: 1, dueAt: world.clock.now() + 60_000 });
});
