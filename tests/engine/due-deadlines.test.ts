// Stored deadlines that several processes see as due.

import { expect, test } from "vitest";
import type { DeadlineHandler } from "../../src/engine/deadlines.ts";
import { cleanup, openTestEngine, temporaryFolder } from "../kit/engine/engine.ts";
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
  await one.engine.commit((unit) =>
    one.engine.setDeadline(unit, { kind: "test", key: "it", dueAt: unit.now }),
  );
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
