import { expect, test } from "vitest";
import { matchesPattern } from "../../../src/core/text/pattern.ts";

test.each([
  ["main", "main", true],
  ["main", "Main", false],
  ["*", "", true],
  ["*", "anything", true],
  ["", "", true],
  ["", "x", false],
  ["agent:*:main", "agent:research:main", true],
  ["agent:*:main", "agent:main", false],
  ["a*a", "a", false],
  ["a*a", "aa", true],
  ["*b*b*", "b", false],
  ["*b*b*", "abcb", true],
  ["a**c", "abc", true],
  ["a.c", "abc", false],
  ["[a-z]*", "abc", false],
  ["sessions_*", "sessions_list", true],
])("P1: pattern %j against %j is %j", (pattern, text, expected) => {
  expect(matchesPattern(pattern, text)).toBe(expected);
});

test("P1: if a long text does not match, a pattern with many stars rejects it quickly", () => {
  expect(matchesPattern("*a".repeat(2000), "a".repeat(1999))).toBe(false);
  expect(matchesPattern(`${"a*".repeat(2000)}b`, "a".repeat(50_000))).toBe(false);
});
