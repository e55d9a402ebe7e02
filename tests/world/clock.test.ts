// The clock of a real process, with real timers.

import { afterEach, expect, test } from "vitest";
import { plainClock, timerAt } from "../../src/world/plain.ts";

const systemNow = Date.now;

afterEach(() => {
  Date.now = systemNow;
});

test("no timer fires before its time", async () => {
  const early: number[] = [];
  const one = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const dueMs = plainClock.now() + ms;
      timerAt(
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

test("no timer after a duration fires before the duration is over", async () => {
  const early: number[] = [];
  const one = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const dueMs = plainClock.monotonic() + ms;
      plainClock.after(
        ms,
        () => {
          if (plainClock.monotonic() < dueMs) early.push(ms);
          resolve();
        },
        "alive",
      );
    });
  for (let round = 0; round < 40; round++) await Promise.all([0.4, 1, 1.7, 2, 3.3, 5, 7].map(one));
  expect(early).toEqual([]);
});

test.each([-3_600_000, 3_600_000])(
  "a timer after a duration ignores that the wall clock is set (by %i ms)",
  async (stepMs) => {
    const from = plainClock.monotonic();
    const fired = Promise.withResolvers<number>();
    plainClock.after(20, () => fired.resolve(plainClock.monotonic() - from), "alive");
    Date.now = () => systemNow() + stepMs;
    expect(await fired.promise).toBeGreaterThanOrEqual(20);
  },
);

test("if the wall clock goes back, a timer fires nevertheless", async () => {
  const from = Date.now();
  const fired = Promise.withResolvers<number>();
  timerAt(from + 5, () => fired.resolve(plainClock.now()), "alive");
  Date.now = () => from - 3_600_000;
  expect(await fired.promise).toBe(from - 3_600_000);
});
