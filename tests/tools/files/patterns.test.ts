// Globs match what they say, and take few steps, whatever a hostile folder's files contain.

import fc from "fast-check";
import { expect, test } from "vitest";
import { isIgnored, matchesGlob, readGlob, readIgnoreFile } from "../../../src/tools/files/patterns.ts";
import { rounds } from "../../kit/deep.ts";

const MANY = 1_000_000_000;

function matches(glob: string, path: string, alternatives = false): boolean {
  return matchesGlob(readGlob(glob, alternatives), path, { left: MANY });
}

/** Decides the same question by trying everything. */
function tries(glob: string, path: string): boolean {
  if (glob === "") return path === "";
  if (glob.startsWith("**/")) {
    const slash = path.indexOf("/");
    return tries(glob.slice(3), path) || (slash >= 0 && tries(glob, path.slice(slash + 1)));
  }
  if (glob === "**") return path !== "";
  const [sign, next] = [glob[0], path[0]];
  if (sign === "*") return tries(glob.slice(1), path) || (/^[^/]/.test(path) && tries(glob, path.slice(1)));
  const isSame = sign === next || (sign === "?" && next !== undefined && next !== "/");
  return isSame && tries(glob.slice(1), path.slice(1));
}

test("a glob matches the same paths as a matcher that tries everything", () => {
  const parts = (part: fc.Arbitrary<string>) =>
    fc.array(part, { minLength: 1, maxLength: 5 }).map((all) => all.join("/"));
  const names = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 4 });
  const signs = fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), minLength: 1, maxLength: 4 });
  // Two stars are a part of their own only if nothing is beside them.
  const plain = signs.map((text) => text.replaceAll(/\*+/g, "*"));
  fc.assert(
    fc.property(parts(fc.oneof(plain, fc.constant("**"))), parts(names), (glob, path) => {
      const whole = glob.includes("/") ? glob : `**/${glob}`;
      expect(matches(glob, path)).toBe(tries(whole, path));
    }),
    { numRuns: rounds(1_000, 20_000) },
  );
});

test.each([
  ["[a-c]?.ts", "b1.ts", true],
  ["[!a-c]*", "d", true],
  ["[^a-c]*", "b", false],
  ["[]x]", "]", true],
  ["[x", "[x", true],
  ["\\*", "*", true],
  ["\\*", "a", false],
  ["/a", "b/a", false],
  ["a/**", "a", false],
  ["a/**", "a/b/c", true],
  ["{a,b{c,d}}/*.{js,ts}", "bd/x.ts", true],
  ["{a,b{c,d}}/*.{js,ts}", "b/x.ts", false],
  ["\\{a}", "{a}", true],
])("the glob %s and the path %s: %s", (glob, path, expected) => {
  expect(matches(glob, path, true)).toBe(expected);
});

test.each(["{a", "[z-a]", "{a,b}".repeat(20)])("the glob %s is invalid", (glob) => {
  expect(() => readGlob(glob, true)).toThrow();
});

test.each([
  ["*a*a*a*a*a*a*a*a*b", "a".repeat(4_000)],
  [`${"*a".repeat(2_000)}b`, "a".repeat(4_000)],
  [`${"**/".repeat(1_000)}b`, "a/".repeat(2_000)],
  [`${"**/*a*a*/".repeat(500)}b`, "aaaa/".repeat(800)],
])("GP1: a match takes at most as many steps as the product of the lengths", (glob, path) => {
  const steps = { left: MANY };
  expect(matchesGlob(readGlob(glob, false), path, steps)).toBe(false);
  expect(MANY - steps.left).toBeLessThan(2 * glob.length * path.length);
});

test("GP1: without steps, no rule is tried any more", () => {
  const steps = { left: 10_000 };
  const file = readIgnoreFile("", "*a*a*b\n".repeat(1_000), steps);
  expect(isIgnored([file], "a".repeat(1_000), false, steps)).toBe(false);
  expect(steps.left).toBeGreaterThan(-10);
});
