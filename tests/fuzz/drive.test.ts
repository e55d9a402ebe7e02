// Tests the fuzz harness: it finds every kind of failure in example targets, and reports how to repeat it.

import fc from "fast-check";
import { expect, test } from "vitest";
import { optional } from "../../src/core/optional.ts";
import { drive } from "./drive.ts";
import { type FuzzTarget, must } from "./target.ts";

function planted(
  check: (input: number) => void | Promise<void>,
  close?: () => Promise<void>,
): FuzzTarget<number> {
  return {
    name: "planted",
    proves: "nothing",
    inputs: fc.nat(1_000),
    roundRuns: 200,
    ciRuns: 200,
    open: () => ({ check, ...optional({ close }) }),
  };
}

const once = { seed: 1, enough: () => true };

test("a property that holds for every input passes, and the inputs of the corpus are tried first", async () => {
  const seen: number[] = [];
  const target = planted((input) => void seen.push(input));
  expect(await drive(target, once)).toEqual({ target: "planted", runs: 200, corpus: 2 });
  expect(seen.slice(0, 2)).toEqual([7, 4_000]);
});

test("an input that violates the property is reported with the seed and path that repeat it", async () => {
  const target = planted((input) => must(input < 900 || input > 1_000, `${input} is large`));
  const { failure = "" } = await drive(target, once);
  const [, seed, path] = /--target planted --seed (\d+) --path "([\d:]+)"/.exec(failure) ?? [];
  expect(failure).toContain("Input: 900");
  const again = await drive(target, { ...once, seed: Number(seed), path: path ?? "" });
  expect(again.failure).toContain("900 is large");
  const other = planted((input) => must(input < 990 || input > 1_000, `${input} is large`));
  expect((await drive(other, { ...once, seed: Number(seed), path: path ?? "" })).failure).toBeUndefined();
});

test("a failing input of the corpus is reported by its number", async () => {
  const { failure } = await drive(
    planted((input) => must(input !== 4_000, "no")),
    once,
  );
  expect(failure).toContain("corpus/planted.json, input 1: 4000");
});

test("uncaught errors, unhandled rejections and a changed prototype are failures", async () => {
  const rejecting = planted((input) => {
    if (input > 500 && input < 1_000) void Promise.reject(new Error("stray"));
  });
  expect((await drive(rejecting, once)).failure).toContain("stray");
  const polluting = planted((input) => {
    if (input > 500 && input < 1_000) Reflect.set(Object.prototype, "polluted", 1);
  });
  try {
    expect((await drive(polluting, once)).failure).toContain(
      "a prototype that everything shares was changed",
    );
  } finally {
    Reflect.deleteProperty(Object.prototype, "polluted");
  }
});

test("if an error occurs while a property is closed, its round fails", async () => {
  const leaking = planted(
    () => {},
    async () => must(false, "something is held"),
  );
  expect((await drive(leaking, once)).failure).toContain("something is held");
});
