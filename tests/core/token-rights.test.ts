// Rights within other rights.

import fc from "fast-check";
import { expect, test } from "vitest";
import { isWithin, limitedTo } from "../../src/core/rules/scopes.ts";
import { matchesAny } from "../../src/core/text/pattern.ts";

const patterns = fc.array(fc.string({ unit: fc.constantFrom("a", "b", ":", "*"), maxLength: 6 }), {
  maxLength: 3,
});
const key = fc.string({ unit: fc.constantFrom("a", "b", ":"), maxLength: 8 });
const scopes = ["operator.read"] as const;

test("if rights are within other rights, the others cover every key that they cover", () => {
  fc.assert(
    fc.property(patterns, patterns, key, (inner, outer, text) => {
      if (!isWithin({ scopes, patterns: inner }, { scopes, patterns: outer })) return;
      expect(matchesAny(inner, text) && !matchesAny(outer, text)).toBe(false);
    }),
    { numRuns: 5_000 },
  );
});

test("limiting rights by other rights gives rights within both, and loses nothing that was within the limit", () => {
  fc.assert(
    fc.property(patterns, patterns, (given, limit) => {
      const [rights, outer] = [
        { scopes, patterns: given },
        { scopes, patterns: limit },
      ];
      const left = limitedTo(rights, outer);
      expect(isWithin(left, outer)).toBe(true);
      expect(isWithin(left, rights)).toBe(true);
      if (isWithin(rights, outer)) expect(left).toEqual(rights);
    }),
  );
});

test.each([
  ["a smaller scope", { scopes: ["operator.read"] }, { scopes: ["operator.admin"] }, true],
  ["a larger scope", { scopes: ["operator.write"] }, { scopes: ["operator.read"] }, false],
  ["every session", { scopes: [] }, { scopes: [], patterns: ["*"] }, false],
  [
    "a wildcard in place of a text",
    { scopes: [], patterns: ["agent:*"] },
    { scopes: [], patterns: ["agent:x"] },
    false,
  ],
] as const)("%s: whether the rights are within others", (_, inner, outer, expected) => {
  expect(isWithin(inner, outer)).toBe(expected);
});
