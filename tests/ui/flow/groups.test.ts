// Sibling jobs that share a column, and the rows of the waterfall.

import { expect, test } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import type { ChainCall, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { grouped } from "../../../ui/src/flow/sequence/groups.ts";
import { layOut } from "../../../ui/src/flow/sequence/layout.ts";
import { type Bar, barsOf, countOpenLevels, rowsOf, totalOf } from "../../../ui/src/flow/waterfall/bars.ts";
import { countWords, isFailed, label, title, waitWords } from "../../../ui/src/flow/words.ts";
import { dice as diceOf } from "../../kit/dice.ts";

const A = "agent:a:main";
const NONE: ReadonlySet<string> = new Set();
const around = {
  name: (key: string): string => key,
  limits: { runsMax: 200, hopsMax: 16 },
  waits: new Map<string, ChainStep>(),
};

function step(more: Partial<ChainStep>): ChainStep {
  return { id: "s", kind: "message", at: 1_000, state: "ok", text: "", ...more };
}

function jobs(count: number, from = A, name = "job"): ChainStep[] {
  return Array.from({ length: count }, (_, at) => [
    step({
      ...{ id: `run:${name}${at}`, runId: `${name}${at}`, kind: "spawn" as const, from, to: `${name}-${at}` },
      ...{ text: `part ${at}`, at: 1_000 + at, startedAt: 1_100 + at, endAt: 2_000 + at, tokens: 5 },
      ...(at === 3 ? { state: "error" as const } : {}),
    }),
  ]).flat();
}

const partiesOf = (steps: readonly ChainStep[]) =>
  [...new Set(steps.flatMap(({ from, to }) => [from ?? [], to ?? []].flat()))].map((key) => ({ key }));

test("GR1: four jobs of a session share a column and a row; three jobs, and jobs of an expanded column, do not", () => {
  const four = jobs(4);
  const { steps, parties } = grouped(four, partiesOf(four), NONE);
  expect(parties).toEqual([{ key: A }, { key: `jobs of ${A}`, jobs: four.map(({ to }) => to) }]);
  expect(steps).toHaveLength(1);
  expect(steps[0]).toMatchObject({ state: "error", at: 1_000, endAt: 2_003, tokens: 20, members: four });
  expect(countWords(steps[0]?.members ?? [])).toBe("× 4: 3 ok, 1 error");
  const three = jobs(3);
  expect(grouped(three, partiesOf(three), NONE).steps).toEqual(three);
  expect(grouped(four, partiesOf(four), new Set([`jobs of ${A}`])).steps).toEqual(four);
});

const refusal = (at: number, code = "open_flow") =>
  step({
    ...{ id: `refused:${at}`, kind: "refused" as const, from: A, to: "b", tool: "sessions_send" },
    ...{ at, state: "refused", code, text: `try ${at}` },
  });

test("GR3: three and more equal steps that follow each other share a row, until the reader opens it", () => {
  const ten = Array.from({ length: 10 }, (_, at) => refusal(at));
  const all = [...ten, refusal(10, "queue_full"), refusal(11), refusal(12)];
  const rows = (opened: ReadonlySet<string>) => grouped(all, partiesOf(all), opened).steps;
  expect(rows(NONE).map((one) => label(one, around))).toEqual([
    "× 10 refused: both are already in a conversation: reply instead",
    "refused: the recipient's queue is full",
    "refused: both are already in a conversation: reply instead",
    "refused: both are already in a conversation: reply instead",
  ]);
  expect(title(rows(NONE)[0] as ChainStep, around)).toBe(`${A} was refused a message to b × 10`);
  expect(rows(NONE)[0]).toMatchObject({ equal: true, members: ten });
  expect(rows(new Set(["all refused:0"]))).toEqual(all);
  const running = Array.from({ length: 3 }, (_, at) => step({ id: `run:${at}`, to: A, state: "running" }));
  expect(grouped(running, partiesOf(running), NONE).steps).toEqual(running);
});

test("GR4: of more than twelve columns those of an agent share one, unless it is expanded; no step changes", () => {
  const rooms = Array.from({ length: 12 }, (_, at) => `agent:ops:room-${at}`);
  const columns = [A, ...rooms].map((key) => ({ key }));
  const few = columns.slice(0, 12);
  expect(grouped([], few, new Set()).parties).toEqual(few);
  const { parties } = grouped([], columns, new Set());
  expect(parties).toEqual([{ key: A }, { key: "agent ops", merged: rooms.map((key) => ({ key })) }]);
  expect(grouped([], columns, new Set(["agent ops"])).parties).toEqual(columns);
  const sent = { ...step({ kind: "send" }), from: A, to: "agent:ops:room-7" };
  const { steps, lanes } = layOut([sent], parties, 900);
  expect(steps[0]).toMatchObject({ step: sent, from: lanes[0]?.x, to: lanes[1]?.x });
});

test("jobs of jobs share a column of their own", () => {
  const four = jobs(4);
  const deeper = four.flatMap(({ to = "" }) => jobs(2, to, `${to}-sub`));
  const all = [...four, ...deeper];
  const { steps, parties } = grouped(all, partiesOf(all), NONE);
  expect(parties.map(({ key, jobs: own }) => [key, own?.length])).toEqual([
    [A, undefined],
    [`jobs of ${A}`, 4],
    [`jobs of jobs of ${A}`, 8],
  ]);
  expect(steps.map(({ members }) => members?.length)).toEqual([4, 8]);
});

function scattered(seed: string): ChainStep[] {
  const dice = diceOf(seed);
  const kinds = ["message", "send", "reply", "announce", "spawn", "result", "wait", "refused"] as const;
  const keys = [undefined, A, ...Array.from({ length: 8 }, (_, at) => `k${at}`)];
  return Array.from({ length: dice.below(60) }, (_, at) => {
    const [from, to] = [keys[dice.below(keys.length)], keys[dice.below(keys.length)]];
    const kind = kinds[dice.below(kinds.length)] ?? "send";
    const own = { id: `run:${at}`, runId: kind === "wait" ? `${dice.below(60)}` : `${at}` };
    const times = {
      at: at * 10,
      startedAt: at * 10,
      ...(dice.below(3) === 0 ? {} : { endAt: at * 10 + 500 }),
    };
    return step({ ...own, kind, ...times, flowId: `f${dice.below(20)}`, ...optional({ from, to }) });
  });
}

test("GR2, WF1: every step is in exactly one row of the sequence and of the waterfall", () => {
  for (let seed = 0; seed < 60; seed++) {
    const steps = scattered(`groups ${seed}`);
    const rows = grouped(steps, partiesOf(steps), NONE);
    const drawn = rows.steps.flatMap((one) => one.members?.map(({ id }) => id) ?? [one.id]);
    expect(drawn.toSorted()).toEqual(steps.map(({ id }) => id).toSorted());
    const columns = new Set(rows.parties.map(({ key }) => key));
    for (const { from, to } of rows.steps)
      for (const key of [from, to]) if (key !== undefined) expect(columns).toContain(key);
    const bars = rowsOf(barsOf(steps, [], around), () => true).filter(({ bar }) => bar.kind !== "group");
    const own = steps.filter(({ kind }) => kind !== "refused");
    expect(bars.map(({ bar }) => bar.id).toSorted()).toEqual(own.map(({ id }) => id).toSorted());
  }
});

const TALK = [
  step({ id: "run:m", to: A, runId: "m", startedAt: 1_000, endAt: 5_000 }),
  step({
    id: "run:q",
    kind: "send",
    from: A,
    to: "b",
    runId: "q",
    flowId: "f",
    at: 1_200,
    startedAt: 1_300,
    endAt: 3_000,
  }),
  step({
    id: "wait:q",
    kind: "wait",
    from: A,
    to: "b",
    runId: "m",
    flowId: "f",
    at: 1_200,
    endAt: 3_000,
    state: "answered",
  }),
];

test("WF2: calls, waits and runs are below the run that caused them, in the order of time", () => {
  const calls: ChainCall[] = [
    { id: "c1", runId: "m", kind: "model", name: "big", at: 1_000, endAt: 1_150, tokens: 9 },
    { id: "c2", runId: "m", kind: "tool", name: "sessions_send", at: 1_150, endAt: 3_010 },
    { id: "c3", runId: "q", kind: "model", name: "big", at: 1_300, failed: true },
  ];
  const rows = rowsOf(barsOf(TALK, calls, around), () => true);
  expect(rows.map(({ bar, level }) => `${level} ${bar.kind} ${bar.id}`)).toEqual([
    "1 run run:m",
    "2 model c1",
    "2 tool c2",
    "2 run run:q",
    "3 model c3",
    "2 wait wait:q",
  ]);
  expect(rows.map(({ bar }) => bar.failed)).toEqual([false, false, false, false, true, false]);
  const closed = rowsOf(barsOf(TALK, calls, around), () => false);
  expect(closed.map(({ bar }) => bar.id)).toEqual(["run:m"]);
});

test("a waterfall opens as many levels at first as have room, and a closed row has the sums of those below it", () => {
  const [message, question] = TALK as [ChainStep, ChainStep];
  const bars = barsOf(
    [{ ...message, tokens: 10, cost: 0.1 }, { ...question, tokens: 5, cost: 0.2 }, ...TALK.slice(2)],
    [
      { id: "c1", runId: "m", kind: "model", name: "big", at: 1_000, endAt: 1_150, tokens: 10, cost: 0.1 },
      { id: "c2", runId: "q", kind: "model", name: "big", at: 1_300, endAt: 1_400, tokens: 5, cost: 0.2 },
    ],
    around,
  );
  expect(bars.map(({ children }) => children.length)).toEqual([3]);
  expect([1, 4, 5, 100].map((most) => countOpenLevels(bars, most))).toEqual([1, 1, 2, 2]);
  const [top] = bars as [Bar];
  const { used, cost } = totalOf(top);
  expect([used, cost.toFixed(2)]).toEqual([15, "0.30"]);
});

test("four jobs of a run share a row, and so do four calls of a tool", () => {
  const calls = Array.from({ length: 4 }, (_, at): ChainCall => {
    const call = { id: `c${at}`, runId: "m", kind: "tool", name: "exec", at: 1_010, endAt: 1_020 } as const;
    return at === 0 ? { ...call, failed: true } : call;
  });
  const [message] = TALK;
  const rows = rowsOf(
    barsOf([message as ChainStep, ...jobs(5)], calls, around),
    ({ kind }: Bar) => kind === "run",
  );
  expect(rows.map(({ bar }) => bar.name).slice(1)).toEqual(["jobs × 5: 4 ok, 1 error", "exec × 4, 1 failed"]);
});

test("a wait on a run that failed is a failure, and so is the result of a failed job", () => {
  const wait = { ...TALK[2], code: "run_failed" } as ChainStep;
  expect(waitWords(wait)).toBe("failed after 1.8 s");
  expect(isFailed(wait)).toBe(true);
  const result = (status: string): ChainStep =>
    step({ kind: "result", source: "job", text: `Status: ${status}\nResult: x` });
  expect(isFailed(result("error"))).toBe(true);
  expect(isFailed(result("ok"))).toBe(false);
});
