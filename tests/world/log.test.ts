import { expect, test } from "vitest";
import { StoreProblem } from "../../src/store/problems.ts";
import { realWorld } from "../../src/world.ts";

test("a problem of the store is logged once a minute, in words and without a stack; other errors always", () => {
  const { log, logTail } = realWorld({ sync: true });
  const full = (): StoreProblem =>
    new StoreProblem("full", "/store/parley.sqlite", { cause: new Error("database or disk is full") });
  for (let times = 0; times < 20; times += 1) {
    log.error({ err: full() }, "the store failed in a flow");
    log.warn({ err: full() }, "a run could not begin");
  }
  log.error({ err: new StoreProblem("io", "/store/parley.sqlite") }, "the store failed in a flow");
  log.error({ err: new Error("a bug") }, "first");
  log.error({ err: new Error("a bug") }, "second");
  const lines = (logTail?.lines() ?? []).map(({ text }) => JSON.parse(text));
  expect(lines.map(({ msg }) => msg)).toEqual([
    "the store failed in a flow",
    "the store failed in a flow",
    "first",
    "second",
  ]);
  const [problem, , bug] = lines;
  expect(problem.err).toMatchObject({ type: "StoreProblem", message: full().message });
  expect(problem.err.stack).toBe("");
  expect(bug.err.stack).toContain("Error: a bug");
});
