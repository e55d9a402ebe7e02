// Positions in the diagrams of the flow view, and the texts of steps.

import { expect, test } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import type { ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { twoLines } from "../../../ui/src/flow/fitted.ts";
import { hasPair, pairsIn } from "../../../ui/src/flow/pairs.ts";
import { layOut } from "../../../ui/src/flow/sequence/layout.ts";
import { isFailed, label, refusalWords, sentence } from "../../../ui/src/flow/words.ts";
import { dice as diceOf } from "../../kit/dice.ts";

const A = "agent:a:main";
const B = "agent:b:main";
const LIMITS = { runsMax: 200, hopsMax: 16 };
const parties = [{ key: A }, { key: B }];
const name = (key: string): string => key.split(":")[1] ?? key;
const around = { name, limits: LIMITS, waits: new Map<string, ChainStep>() };

function step(more: Partial<ChainStep>): ChainStep {
  return { id: "s", kind: "message", at: 1_000, state: "ok", text: "", ...more };
}

const TALK: readonly ChainStep[] = [
  step({ id: "m", to: A, runId: "r0", startedAt: 1_000, endAt: 5_000 }),
  step({
    id: "q",
    kind: "send",
    from: A,
    to: B,
    runId: "r1",
    flowId: "f",
    at: 1_100,
    startedAt: 1_900,
    endAt: 3_000,
  }),
  step({
    id: "w",
    kind: "wait",
    from: A,
    to: B,
    runId: "r0",
    flowId: "f",
    at: 1_100,
    endAt: 3_000,
    state: "answered",
  }),
  step({ id: "x", kind: "refused", from: B, to: A, at: 2_000, state: "refused", code: "open_flow" }),
];

test("LY1: time goes downwards, and rows of steps are at least a line of text apart", () => {
  const { steps, bars, height } = layOut(TALK, parties, 900);
  const rows = steps.map(({ step: { id }, y }) => ({ id, y })).sort((a, b) => a.y - b.y);
  expect(rows.map(({ id }) => id)).toEqual(["m", "q", "x", "w"]);
  for (const [at, { y }] of rows.slice(1).entries())
    expect(y - (rows[at]?.y ?? 0)).toBeGreaterThanOrEqual(30);
  expect(Math.max(...bars.map(({ end }) => end))).toBeLessThan(height);
  const asked = bars.find(({ id }) => id === "q");
  expect(asked?.run).toBeGreaterThan(asked?.top ?? 0);
});

test("a wait is drawn on the bar of the waiting run, from the message to the answer", () => {
  const { steps, bars } = layOut(TALK, parties, 900);
  const wait = steps.find(({ step: { id } }) => id === "w");
  const sent = steps.find(({ step: { id } }) => id === "q");
  expect(bars.find(({ id }) => id === "m")?.waits).toEqual([{ top: sent?.y, end: wait?.y }]);
  expect(wait?.top).toBe(sent?.y);
});

test("LY2: a long pause is shortened and marked; LY3: an unfinished run reaches to the lower end", () => {
  const later = [
    ...TALK,
    step({
      id: "z",
      kind: "send",
      from: A,
      to: B,
      at: 3_700_000,
      runId: "r9",
      state: "running",
      startedAt: 3_700_000,
    }),
  ];
  const { pauses, height, bars } = layOut(later, parties, 900);
  expect(pauses).toEqual([{ y: expect.any(Number), ms: 3_695_000 }]);
  expect(height).toBeLessThan(500);
  expect(bars.find(({ id }) => id === "z")).toMatchObject({ open: true, end: height - 12 });
});

test("random steps are placed at finite positions, in the order of time", () => {
  const dice = diceOf("4711");
  const kinds = [
    "message",
    "send",
    "reply",
    "announce",
    "spawn",
    "result",
    "wait",
    "refused",
    "delivery",
  ] as const;
  for (let round = 0; round < 50; round++) {
    const keys = [undefined, A, B, "gone"];
    const some = Array.from({ length: dice.below(40) }, (_, at) => {
      const from = keys[dice.below(keys.length)];
      const to = keys[dice.below(keys.length)];
      return step({
        id: `s${at}`,
        kind: kinds[dice.below(kinds.length)] ?? "send",
        at: dice.below(100_000),
        ...optional({ from, to }),
        ...(dice.below(2) === 0 ? {} : { endAt: 100_000 + dice.below(100_000), startedAt: 100_000 }),
      });
    });
    const { steps, bars, width, height } = layOut(some, parties, 800);
    expect(steps).toHaveLength(some.length);
    for (const { y, textX, textWidth } of steps) {
      expect(y).toBeLessThanOrEqual(height);
      expect([y, textX, textWidth, width].every(Number.isFinite)).toBe(true);
    }
    for (const { top, end } of bars) expect(end).toBeGreaterThanOrEqual(top);
    const rows = steps.filter(({ step: { kind } }) => kind !== "wait").toSorted((a, b) => a.y - b.y);
    for (const [
      place,
      {
        step: { at },
      },
    ] of rows.slice(1).entries())
      expect(at).toBeGreaterThanOrEqual(rows[place]?.step.at ?? 0);
  }
});

test("a thousand steps are placed in n log n time", () => {
  const many = Array.from({ length: 1_000 }, (_, at) =>
    step({
      id: `s${at}`,
      kind: "send",
      from: at % 2 === 0 ? A : B,
      to: at % 2 === 0 ? B : A,
      at,
      runId: `r${at}`,
      startedAt: at,
      endAt: at + 1,
    }),
  );
  const { steps } = layOut(many, parties, 800);
  expect(new Set(steps.map(({ y }) => y)).size).toBe(1_000);
});

function chain(talks: ChainRow["talks"]): ChainRow {
  return {
    ...{
      chainId: "c",
      startedAt: 0,
      lastAt: 0,
      active: false,
      runs: 1,
      failed: 0,
      hopMax: 1,
      tokens: 0,
      cost: 0,
    },
    ...{ limits: LIMITS, sessions: [A, B], sessionCount: 2, flows: 1, refused: 0, talks },
  };
}

test("PR1: the overview has one row per sender, recipient and kind of step, with the steps of all chains", () => {
  const talk = { kind: "send" as const, from: A, to: B, steps: 2, open: 0 };
  const chains = [chain([talk, { ...talk, kind: "refused" }]), chain([{ ...talk, steps: 9, open: 1 }])];
  expect(pairsIn(chains)).toMatchObject([
    { kind: "send", from: A, to: B, steps: 11, open: 1 },
    { kind: "refused", from: A, to: B, steps: 2, open: 0 },
  ]);
  expect(pairsIn([chain([{ ...talk, to: A }])])).toEqual([]);
});

test("PR1: jobs of one sender for one agent share a row, which selects the chains of each of them", () => {
  const job = { kind: "spawn" as const, from: A, steps: 1, open: 0 };
  const jobs = chain([1, 2, 3].map((at) => ({ ...job, to: `agent:b:subagent:${at}` })));
  const other = chain([{ ...job, to: "agent:c:subagent:1" }]);
  const [pair, ...rest] = pairsIn([jobs, other]);
  expect(pair).toMatchObject({ from: A, to: "b", steps: 3 });
  expect(rest).toMatchObject([{ to: "c", steps: 1 }]);
  expect([jobs, other].map((one) => hasPair(one, pair))).toEqual([true, false]);
});

test("a run that was stopped did not fail, nor did the wait for it", () => {
  const stopped = step({ kind: "send", from: A, to: B, runId: "r1", state: "aborted", flowId: "f" });
  const wait = step({ kind: "wait", from: A, to: B, state: "answered", code: "run_aborted", endAt: 3_000 });
  const job = step({ kind: "result", from: B, to: A, text: "Status: aborted Result: (none)" });
  expect([stopped, wait, job].map(isFailed)).toEqual([false, false, false]);
  expect(sentence(wait, around)).toBe("a waits for b: stopped after 2.0 s; stopped (run aborted)");
  const broken = step({ ...wait, code: "run_timeout" });
  expect(isFailed(broken)).toBe(true);
  expect(sentence(broken, around)).toBe("a waits for b: failed after 2.0 s; failed (run timeout)");
});

test("a step is described as a sentence with its outcome", () => {
  const waits = new Map([["f", TALK[2] as ChainStep]]);
  const said = sentence({ ...(TALK[1] as ChainStep), text: "what\nis new?" }, { ...around, waits });
  expect(said).toBe("a asked b, answered after 1.9 s: what is new?");
  expect(sentence(step({ kind: "reply", from: B, to: A, turn: 3, turnsMax: 5, silent: true }), around)).toBe(
    "b replied to a, turn 2 of 5; silent",
  );
  expect(
    label(
      step({ kind: "result", from: B, to: A, text: "Status: ok Result: all fine Notes: (none)" }),
      around,
    ),
  ).toBe("ok: all fine");
});

test.each([
  [{ code: "wait_cycle", cycle: [A, B, A] }, "circular wait a → b → a"],
  [{ code: "wait_cycle" }, "circular wait"],
  [{ code: "chain_limit", error: "… (session.agentToAgent.maxHops)" }, "hop limit 16"],
  [
    { code: "chain_limit", error: "… (session.agentToAgent.maxChainTokens is 5)" },
    "the token budget is used up",
  ],
  [{ code: "chain_limit" }, "a limit of the chain"],
  [{ code: "not_visible" }, "the sender may not see such a session"],
  [{ code: "something_new" }, "something new"],
])("a refusal is described in words: %j", (facts, words) => {
  expect(refusalWords(step({ kind: "refused", state: "refused", ...facts }), around)).toBe(words);
});

test.each([
  ["**bold** and *more*", "bold and more"],
  ["# Title\n\nA [link](https://a.example/x) and ~~old~~ text", "Title A link and old text"],
  ["> quoted **and *nested* words**", "quoted and nested words"],
  ["run `a **b** c` now", "run a **b** c now"],
  ["**see `x_y`**, __twice__", "see x_y, twice"],
  ["```ts\nconst a = b * c * d;\n```", "const a = b * c * d;"],
  ["```sh\n# not a title", "# not a title"],
  ["2 * 3 * 4, snake_case_name, 5 > 4 and #19", "2 * 3 * 4, snake_case_name, 5 > 4 and #19"],
])("a label shows Markdown as plain text: %j", (text, shown) => {
  expect(label(step({ text }), around)).toBe(shown);
  expect(sentence(step({ text, to: A }), around)).toBe(`a person wrote to a: ${shown}`);
});

test("PL1: a text without marks stays as it is, and hostile texts take no long time", () => {
  for (const text of ["plain words.", "a - b", "half **open", "`tick", "* one", "\\*no\\*"])
    expect(label(step({ text }), around)).toBe(text);
  for (const part of ["*a ", "_a", "[", "`", "**", "[a](", "~~", "> ", "# ", "*a*"])
    expect(label(step({ text: part.repeat(20_000) }), around).length).toBeGreaterThan(0);
});

test("a text that does not fit ends with a whole sign on each of its lines", () => {
  const family = "👨‍👩‍👧‍👦";
  for (let width = 80; width < 200; width += 7) {
    const lines = twoLines(family.repeat(40), width);
    expect(lines.map((line) => line.replaceAll(family, ""))).toEqual(["", "…"]);
  }
});

test("LY4: a resized column keeps its width, and moves the columns behind it", () => {
  const parties = ["a", "b", "c"].map((key) => ({ key }));
  const before = layOut(TALK, parties, 900);
  const { lanes, width } = layOut(TALK, parties, 900, { widths: new Map([["a", before.laneWidth + 300]]) });
  expect(lanes.map(({ x }, at) => x - (before.lanes[at]?.x ?? 0))).toEqual([0, 300, 300]);
  expect(width).toBeGreaterThan(before.width + 290);
});
