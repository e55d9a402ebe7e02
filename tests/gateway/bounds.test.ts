// Limits of tables that unknown clients, tokens and agents can fill: each table has a maximum size, and no
// client, token or agent can fill a table alone.

import { expect, test } from "vitest";
import { createGuessLimit } from "../../src/gateway/auth.ts";
import { fakeWorld } from "../kit/world.ts";

test("wrong tokens are counted for ten thousand addresses at most; the oldest are dropped first", () => {
  const { clock } = fakeWorld();
  const limit = createGuessLimit(clock);
  const guess = (address: string): void => {
    for (let at = 0; at < 11; at += 1) limit.note(address);
  };
  guess("first");
  guess("second");
  for (let at = 0; at < 9_999; at += 1) limit.note(`other-${at}`);
  expect([limit.check("first").ok, limit.check("second").ok]).toEqual([true, false]);
});
