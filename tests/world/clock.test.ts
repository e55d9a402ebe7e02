// The clock of a real process, with real timers.

import { afterEach, expect, test } from "vitest";
import { plainClock } from "../../src/world/plain.ts";

const systemNow = Date.now;

afterEach(() => {
  Date.now = systemNow;
});

test("no timer fires before its time", async () => {
  const early: number[] = [];
  const one = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const dueMs = plainClock.now() + ms;
      plainClock.at(
        dueMs,
        () => {
          if (plainClock.now() < dueMs) early.push(ms);
          resolve();
        },
        "alive",
      );
    });
  for (let round = 0; round < 40; round++) await Promise.all([1, 2, 3, 5, 7].map(one));
  expect(early).toEqual([]);
});

test("if the wall clock goes back, a timer fires nevertheless", async () => {
  const from = Date.now();
  const fired = Promise.withResolvers<number>();
  plainClock.at(from + 5, () => fired.resolve(plainClock.now()), "alive");
  Date.now = () => from - 3_600_000;
  expect(await fired.promise).toBe(from - 3_600_000);
});
