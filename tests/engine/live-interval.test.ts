import { expect, test } from "vitest";
import { liveIntervalMs } from "../../src/engine/run/execution.ts";

test("live text of up to 32 runs comes every 50 ms, of more runs less often, but at least every 200 ms", () => {
  expect([1, 32, 64, 128, 1_000].map(liveIntervalMs)).toEqual([50, 50, 100, 200, 200]);
});
