// The limits of concurrent requests of MCP clients.

import { expect, test } from "vitest";
import { Exchanges } from "../../../src/features/mcp-server/streams.ts";
import { fakeWorld } from "../../kit/world.ts";

test("MX2: one token has at most 512 concurrent MCP requests, all tokens 1,000; finished requests make room for new ones", () => {
  const exchanges = new Exchanges(fakeWorld().clock);
  const begin = (caller: string, count: number) =>
    Array.from({ length: count }, () => exchanges.begin(caller)).filter((one) => one.ok);
  const mine = begin("one", 600);
  expect([mine.length, begin("two", 600).length, begin("three", 600).length]).toEqual([512, 488, 0]);
  const [first] = mine;
  if (first?.ok) first.value.end();
  expect(begin("three", 2)).toHaveLength(1);
});
