// Checks the record of a replay against the expectations of its case.

import { isCompaction, textOf, toolCallsOf } from "../../../core/shapes/message.ts";
import type { ChainRecord } from "../../../core/shapes/record/chain.ts";
import type { Expectation } from "./file.ts";

/** The result of one expectation. `why`: the reasons of the judge, or the value that was found. */
export interface Check {
  readonly expectation: Expectation;
  readonly passed: boolean;
  readonly why: string;
}

/** The result of one case with one variant. */
export interface Outcome {
  readonly name: string;
  readonly variant: string;
  readonly passed: boolean;
  readonly checks: readonly Check[];
  /** Failure of the replay itself. */
  readonly error?: string;
  readonly cost: number;
  readonly steps: number;
  readonly differences: number;
}

/** Returns all texts that agents wrote into the session of the first message. */
function answerOf({ runs, entries }: ChainRecord): string {
  const key = runs[0]?.sessionKey;
  const texts = entries.flatMap(({ entry, sessionKey }) =>
    sessionKey === key && !isCompaction(entry) && entry.role === "assistant" ? textOf(entry) || [] : [],
  );
  return texts.join("\n");
}

const calledIn = ({ entries }: ChainRecord): Set<string> =>
  new Set(
    entries.flatMap(({ entry }) => (isCompaction(entry) ? [] : toolCallsOf(entry).map(({ name }) => name))),
  );

/** Returns the number of answers of models. */
export const stepsOf = ({ entries }: ChainRecord): number =>
  entries.filter(({ entry }) => !isCompaction(entry) && entry.role === "assistant").length;

export const costOf = ({ runs }: ChainRecord): number =>
  runs.reduce((sum, run) => sum + run.usage.cost.total, 0);

export type Judge = (question: string, answer: string) => Promise<{ passed: boolean; why: string }>;

async function check(record: ChainRecord, expectation: Expectation, judge: Judge): Promise<Check> {
  const { kind, value } = expectation;
  const makeCheck = (passed: boolean, why: string): Check => ({ expectation, passed, why });
  switch (kind) {
    case "contains":
      return makeCheck(answerOf(record).includes(String(value)), answerOf(record));
    case "toolCalled":
    case "notCalled": {
      const called = calledIn(record);
      return makeCheck(
        called.has(String(value)) === (kind === "toolCalled"),
        `called: ${[...called].join(", ")}`,
      );
    }
    case "costBelow":
      return makeCheck(costOf(record) < Number(value), `${costOf(record)} USD`);
    case "stepsBelow":
      return makeCheck(stepsOf(record) < Number(value), `${stepsOf(record)} answers`);
    case "ends": {
      const { state, error = "" } = record.runs[0] ?? { state: "" };
      return makeCheck(state === value, `${state} ${error}`.trim());
    }
    case "judge":
      return { expectation, ...(await judge(String(value), answerOf(record))) };
  }
}

export async function checksOf(
  record: ChainRecord,
  expectations: readonly Expectation[],
  judge: Judge,
): Promise<Check[]> {
  const checks: Check[] = [];
  for (const one of expectations) checks.push(await check(record, one, judge));
  return checks;
}
