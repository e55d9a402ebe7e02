// The replay worker: a process that replays one chain, or compares two, and ends. process.ts starts
// it. It also ends when the process that started it has ended. It opens no store, channel or hook.

import { setPriority } from "node:os";
import { readRecord } from "../../../contract/chain-record.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { ChainRecord } from "../../../core/shapes/record/chain.ts";
import { fromDifference } from "../../../core/text/difference.ts";
import { realWorld } from "../../../world.ts";
import { diffChains, shortened } from "../chain-diff.ts";
import type { ChainComparison, ReplayOutcome } from "../contract.ts";
import { type Replayed, replayIn, type WantedVariation } from "../play/play.ts";

/** The records of two chains to compare. */
export interface DiffOrder {
  readonly a: string;
  readonly b: string;
}

/** The message that starts the replay. */
export interface ReplayOrder {
  /** The record, as its text. */
  readonly record: string;
  readonly changes?: WantedVariation;
  readonly repeat: number;
}

export type ReplayMessage =
  | { readonly replay: number; readonly done: number; readonly total: number }
  | { readonly result: Result<readonly ReplayOutcome[] | ChainComparison> };

/** Characters of the texts of all outcomes together. An answer must fit into a client's buffer. */
const CHARS_MAX = 400_000;
/** Characters of each side of the first difference. */
const SIDE_CHARS = 2_000;
/** Priority of the process, below that of the gateway. */
const PRIORITY = 10;
/** Number of messages about the progress of a replay. */
const MESSAGES_MAX = 50;

function outcomeOf(record: ChainRecord, replayed: Replayed, charsMax: number): ReplayOutcome {
  const { runs, entries, labels, difference: found, varied } = replayed;
  const { runId, sessionKey, step, expected: a = "", got: b = "" } = found ?? {};
  const [expected, got] = fromDifference(a, b, SIDE_CHARS);
  return {
    ...{ runs, entries, labels },
    ...(found === undefined ? {} : { difference: { runId, sessionKey, step, expected, got } }),
    ...optional({
      varied: varied && {
        ...{ answers: varied.answers, cost: varied.cost, missing: varied.missing },
        diff: shortened(diffChains(record, varied.record), charsMax),
      },
    }),
  } as ReplayOutcome;
}

const tell = (message: ReplayMessage, told = (): void => {}): void => {
  if (process.connected) process.send?.(message, told);
};

async function play({ record: text, changes, repeat }: ReplayOrder): Promise<Result<ReplayOutcome[]>> {
  const record = readRecord(text);
  if (!record.ok) return record;
  const replay = replayIn(realWorld({ level: "silent" }));
  const outcomes: ReplayOutcome[] = [];
  for (let at = 1; at <= repeat; at += 1) {
    let told = 0;
    const replayed = await replay(record.value, changes, (done, total) => {
      const part = Math.floor((done * MESSAGES_MAX) / total);
      if (part > told) tell({ replay: at, done, total });
      told = Math.max(part, told);
    });
    if (!replayed.ok) return replayed;
    if (changes !== undefined && replayed.value.varied === undefined)
      return fail("run_failed", "a run of the replay did not end");
    outcomes.push(outcomeOf(record.value, replayed.value, CHARS_MAX / repeat));
  }
  return ok(outcomes);
}

function compareChains({ a, b }: DiffOrder): Result<ChainComparison> {
  const [left, right] = [readRecord(a), readRecord(b)];
  if (!left.ok) return left;
  return right.ok ? ok(shortened(diffChains(left.value, right.value), CHARS_MAX)) : right;
}

process.once("disconnect", () => process.exit());
process.once("message", async (order: ReplayOrder | DiffOrder) => {
  setPriority(PRIORITY);
  const makeResult = async () => ("record" in order ? play(order) : compareChains(order));
  const result = await makeResult().catch((error: unknown) =>
    fail("run_failed", `the replay failed: ${(error as Error).message}`),
  );
  tell({ result }, () => process.disconnect());
});
