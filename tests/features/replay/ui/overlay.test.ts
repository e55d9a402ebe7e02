// The steps of two chains, laid over each other.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { ChainStep } from "../../../../src/core/shapes/chain-step.ts";
import type { ChainComparison } from "../../../../src/features/replay/contract.ts";
import { overlaid, type WholeChain } from "../../../../ui/src/features/replay/overlay/overlay.ts";

const USED = { tokens: 0, cost: 0, ms: 0 };
const LIMITS = { runsMax: 9, hopsMax: 9 };
const ID = "01a21055-5d7a-7c49-8e3f-51d8036d0f5";

const stepOf = (runId: string, at: number, text: string, more: Partial<ChainStep> = {}): ChainStep => ({
  ...{ id: `${more.kind ?? "send"} ${runId}`, kind: "send", from: "agent:main:main", to: "agent:ops:main" },
  ...{ at, endAt: at + 5, state: "ok", text, runId },
  ...more,
});

function chainOf(chainId: string, startedAt: number, steps: readonly ChainStep[]): WholeChain {
  const keys = new Set(steps.flatMap(({ from = [], to = [] }) => [from, to].flat()));
  return {
    chain: {
      ...{
        chainId,
        startedAt,
        lastAt: startedAt + 100,
        active: false,
        runs: 1,
        hopMax: 0,
        failed: 0,
        refused: 0,
      },
      ...{
        sessions: [...keys],
        sessionCount: keys.size,
        flows: 0,
        talks: [],
        limits: LIMITS,
        tokens: 0,
        cost: 0,
      },
    },
    parties: [...keys].map((key) => ({ key })),
    steps,
  };
}

function diffOf(pairs: readonly (readonly [string | undefined, string | undefined])[]): ChainComparison {
  const totals = { chainId: "c", runs: 0, steps: 0, ...USED };
  const side = (runId: string | undefined) =>
    runId === undefined ? undefined : { runId, text: "", ...USED };
  const steps = pairs.map(([a, b]) => ({
    session: "s",
    step: "message",
    same: true,
    a: side(a),
    b: side(b),
  }));
  return { a: totals, b: totals, differences: 0, labels: [], steps } as ChainComparison;
}

const shown = ({ steps }: ReturnType<typeof overlaid>) =>
  steps.map(({ side, text, at }) => `${side} ${text} ${at}`);

test("OV1: steps of both are there once, and a step of the second one follows the step that it follows there", () => {
  const a = chainOf("a", 1_000, [
    stepOf("a1", 1_000, "go"),
    stepOf("a2", 1_010, "old"),
    stepOf("a3", 1_020, "end"),
  ]);
  const b = chainOf("b", 5_000, [
    stepOf("b1", 5_000, "go"),
    stepOf("b4", 5_005, "new"),
    stepOf("b3", 5_020, "the end"),
  ]);
  const diff = diffOf([
    ["a1", "b1"],
    ["a2", undefined],
    [undefined, "b4"],
    ["a3", "b3"],
  ]);
  const over = overlaid(a, b, diff);
  expect(shown(over)).toEqual(["both go 1000", "b new 1005", "a old 1010", "differs end 1020"]);
  expect(over.steps.at(-1)?.other?.text).toBe("the end");
});

test("OV2: sub-agents of both chains share a column, in their order, and ids in texts do not differ", () => {
  const spawn = (runId: string, at: number, id: number) =>
    stepOf(runId, at, `job ${ID}${id}`, { kind: "spawn", to: `agent:main:subagent:${ID}${id}` });
  const a = chainOf("a", 0, [spawn("a1", 1, 1), spawn("a2", 2, 2)]);
  const b = chainOf("b", 0, [spawn("b1", 1, 3), spawn("b2", 2, 4), spawn("b3", 3, 5)]);
  const over = overlaid(
    a,
    b,
    diffOf([
      ["a1", "b1"],
      ["a2", "b2"],
      [undefined, "b3"],
    ]),
  );
  expect(over.steps.map(({ side, to }) => `${side} ${to?.at(-1)}`)).toEqual(["both 1", "both 2", "b 5"]);
  expect(over.parties.map(({ key }) => key.at(-1))).toEqual(["n", "1", "2", "5"]);
});

test("OV1: no step is lost or shown twice, whatever is paired", () => {
  const count = fc.nat({ max: 6 });
  fc.assert(
    fc.property(count, count, fc.array(fc.tuple(count, count)), (inA, inB, tuples) => {
      const chain = (name: string, many: number) =>
        chainOf(
          name,
          0,
          Array.from({ length: many }, (_, at) => stepOf(`${name}${at}`, at * 10, `${at}`)),
        );
      const [seenA, seenB] = [new Set<number>(), new Set<number>()];
      const pairs = tuples.flatMap(([one, two]) => {
        if (seenA.has(one) || seenB.has(two)) return [];
        seenA.add(one);
        seenB.add(two);
        return [[`a${one}`, `b${two}`] as const];
      });
      const { steps } = overlaid(chain("a", inA), chain("b", inB), diffOf(pairs));
      const ids = steps.flatMap(({ id, other }) => (other === undefined ? [id] : [id, other.id]));
      const all = [...Array(inA).keys()].map((at) => `send a${at}`);
      expect(ids.toSorted()).toEqual(
        [...all, ...[...Array(inB).keys()].map((at) => `send b${at}`)].toSorted(),
      );
    }),
  );
});
