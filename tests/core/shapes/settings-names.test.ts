// Spellings of models and thinking levels, as people and models write them.

import { expect, test } from "vitest";
import { modelsNamed, thinkingNamed } from "../../../src/core/shapes/settings/settings.ts";

const NAMES = ["local/qwen3", "other/qwen3", "local/org/big", "anthropic/claude", "offline/rehearsal"];

test.each([
  ["local/qwen3", ["local/qwen3"]],
  [" claude ", ["anthropic/claude"]],
  ["org/big", ["local/org/big"]],
  ["qwen3", ["local/qwen3", "other/qwen3"]],
  ["big", []],
  ["", []],
])("a model id is a valid name if only one provider has that model: %j means %j", (wanted, meant) => {
  expect(modelsNamed(wanted, NAMES)).toEqual(meant);
});

test.each([
  ["LOW", "low"],
  [" High ", "high"],
  ["on", "low"],
  ["Mid", "medium"],
  ["hard", undefined],
  ["", undefined],
])(
  "a thinking level is accepted in upper and lower case and in other spellings: %j is %s",
  (wanted, level) => {
    expect(thinkingNamed(wanted)).toBe(level);
  },
);
