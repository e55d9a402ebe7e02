import { expect, test } from "vitest";
import { firstLine } from "../../../src/core/rules/attention/groups.ts";

test("the preview of an answer is its first line with words, without leading Markdown characters", () => {
  expect(firstLine("\n---\n## Before a release\n\n1. Tests")).toBe("Before a release");
  expect(firstLine("> - **Done**: nothing is left\nmore")).toBe("Done: nothing is left");
  expect(firstLine("The `key` of *all* [things](https://a.example)")).toBe("The key of all things");
  expect(firstLine("**Bold** begins")).toBe("Bold begins");
  expect(firstLine("I see 9 sessions:\n- main")).toBe("I see 9 sessions:");
  expect(firstLine("--- \n***")).toBe("--- \n***");
});
