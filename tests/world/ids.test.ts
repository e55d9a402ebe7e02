// Ids of rows in the form that the store's indexes need.

import { afterEach, expect, test, vi } from "vitest";
import { plainIds } from "../../src/world/plain.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("an ordered UUID has version 7: it begins with its time, and later ids sort after it, also in one millisecond", () => {
  const made = [1_900_000_000_000, 1_900_000_000_000, 1_900_000_000_001, 1_910_000_000_000].map((now) => {
    vi.useFakeTimers({ now });
    return plainIds.orderedUuid();
  });
  expect(made.toSorted()).toEqual(made);
  for (const id of made)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(Number.parseInt((made[0] ?? "").slice(0, 13).replace("-", ""), 16)).toBe(1_900_000_000_000);
});

test("UUIDs of the same millisecond differ, and so do the abbreviations that people see", () => {
  vi.useFakeTimers({ now: 1_700_000_000_000 });
  const many = (make: () => string): Set<string> => new Set(Array.from({ length: 1_000 }, make));
  expect(many(plainIds.orderedUuid).size).toBe(1_000);
  // In a thousand random 32-bit values, the probability of a collision is about 1 in 9,000.
  expect(many(() => plainIds.uuid().slice(0, 8)).size).toBeGreaterThan(990);
});
