// The wordings of about forty servers, each with the part of the conversation that it blames.

import { expect, test } from "vitest";
import { judgeRefusal } from "../../../src/agent/model/refusals.ts";
import { NOT_OVERFLOWS, OVERFLOWS } from "../../kit/dialects/overflow.ts";
import { WORDINGS } from "./wordings.ts";

test.each(Object.keys(WORDINGS))("whatever its words, an error is known to blame: %s", (part) => {
  const wordings = WORDINGS[part] ?? [];
  const judged = wordings.map(({ server, status, words }) => [server, judgeRefusal(status, words)]);
  expect(judged).toEqual(wordings.map(({ server }) => [server, part === "others" ? undefined : part]));
  expect(judged.length).toBeGreaterThan(10);
});

test.each([
  ["a context that is too long", OVERFLOWS, "length"],
  ["another limit of tokens", NOT_OVERFLOWS, undefined],
] as const)("each server's error about %s is known as one", (_, refusals, part) => {
  for (const { server, status, body } of refusals)
    expect([server, judgeRefusal(status, typeof body === "string" ? body : JSON.stringify(body))]).toEqual([
      server,
      part,
    ]);
});

test("long rows of digits are judged in time that grows with their length", () => {
  expect(judgeRefusal(400, `invalid token in prompt: ${"1".repeat(7_000)}`)).toBeUndefined();
});
