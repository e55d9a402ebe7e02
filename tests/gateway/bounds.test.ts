// Limits of tables that unknown clients, tokens and agents can fill: each has a maximum size, and none can be
// used up by one of them.

import { expect, test } from "vitest";
import { PermissionDesk } from "../../src/agent/acp/permission.ts";
import { createGuessLimit } from "../../src/gateway/auth.ts";
import { Exchanges } from "../../src/gateway/mcp/streams.ts";
import { fakeWorld } from "../kit/world.ts";

test("wrong tokens are counted for ten thousand addresses, of which the oldest are dropped first", () => {
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

test("an agent with endless permission requests is refused, so that others can ask", async () => {
  const told: string[] = [];
  const desk = new PermissionDesk(fakeWorld(), (sessionKey) => told.push(sessionKey));
  const stop = new AbortController();
  const ask = (sessionKey: string) => {
    const asked = { sessionKey, runId: "r", agentId: "a", title: "t", rawInput: undefined, askMs: 1_000 };
    return desk.ask(asked, stop.signal);
  };
  const first = Array.from({ length: 30 }, () => ask("one"));
  expect(desk.list()).toHaveLength(20);
  expect(await first.at(-1)).toBe("deny");
  void ask("two");
  expect(
    desk
      .list()
      .map(({ sessionKey }) => sessionKey)
      .at(-1),
  ).toBe("two");
  for (let at = 0; at < 30; at += 1) for (let of = 0; of < 10; of += 1) void ask(`session-${at}`);
  expect(desk.list()).toHaveLength(200);
  stop.abort();
  expect(desk.list()).toEqual([]);
  // Each request gives two events: one when it opens, one when it is decided.
  expect(told.filter((key) => key === "one")).toHaveLength(40);
});

test("MX2: one token has at most 512 concurrent MCP requests, all tokens 1,000; finished requests free a place", () => {
  const exchanges = new Exchanges(fakeWorld().clock);
  const begin = (caller: string, count: number) =>
    Array.from({ length: count }, () => exchanges.begin(caller)).filter((one) => one.ok);
  const mine = begin("one", 600);
  expect([mine.length, begin("two", 600).length, begin("three", 600).length]).toEqual([512, 488, 0]);
  const [first] = mine;
  if (first?.ok) first.value.end();
  expect(begin("three", 2)).toHaveLength(1);
});
