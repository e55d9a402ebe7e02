// The wordings of about forty servers, each with the part of the conversation that it blames.

import { expect, test } from "vitest";
import { judgeRefusal } from "../../../src/agent/model/refusals.ts";
import { OVERFLOWS } from "../../kit/dialects/overflow.ts";
import { WORDINGS } from "./wordings.ts";

test.each(Object.keys(WORDINGS))("whatever its words, an error is known to blame: %s", (part) => {
  const wordings = WORDINGS[part] ?? [];
  const judged = wordings.map(({ server, status, words }) => [server, judgeRefusal(status, words)]);
  expect(judged).toEqual(wordings.map(({ server }) => [server, part === "others" ? undefined : part]));
  expect(judged.length).toBeGreaterThan(10);
});

test("each server's error about a context that is too long is known as one", () => {
  const judged = OVERFLOWS.map(({ server, status, body }) => {
    return [server, judgeRefusal(status, typeof body === "string" ? body : JSON.stringify(body))];
  });
  expect(judged).toEqual(OVERFLOWS.map(({ server }) => [server, "length"]));
});

test("long rows of digits are judged in time that grows with their length", () => {
  expect(judgeRefusal(400, `invalid token in prompt: ${"1".repeat(7_000)}`)).toBeUndefined();
});
