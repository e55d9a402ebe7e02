// Owns the methods that replay a chain from its record, and that compare two chains. Only the asking
// connection gets the progress, and only it can stop its replay.

import type { EventPayloads } from "../../../contract/events.ts";
import type { ChainComparison, ReplayOutcome } from "../../../contract/methods/chains.ts";
import type { ParamsOf, PayloadOf } from "../../../contract/methods.ts";
import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import { NO_VARIATION, type Variation } from "../../../core/shapes/record/variation.ts";
import type { Caller } from "../../auth.ts";
import type { CallContext, Methods } from "../../call.ts";
import { type RecordDeps, redacted, written } from "./record.ts";

/** Returns the text of a record. */
type ReadRecord = () => Promise<Result<string>>;

interface WantedReplay {
  readonly record: ReadRecord;
  readonly variation?: Variation;
  readonly repeat: number;
}

interface Replays {
  replay(
    wanted: WantedReplay,
    watch: {
      readonly signal: AbortSignal;
      progress(replay: number, done: number, total: number): void;
    },
  ): Promise<Result<readonly ReplayOutcome[]>>;
  compare(records: readonly ReadRecord[], signal: AbortSignal): Promise<Result<ChainComparison>>;
}

export interface ReplayDeps extends RecordDeps {
  /** Works in processes of its own. Absent if that is unavailable. */
  readonly replays?: Replays;
  /** Sends the progress of a replay to one connection. */
  readonly tellReplay: (caller: Caller, progress: EventPayloads["replay"]) => void;
}

const NONE = fail("unknown_method", "this gateway replays no chains");

/** The replays at work, by the connection that asked for them. */
const working = new WeakMap<Caller, AbortController>();

const isEmpty = (one: object): boolean => Object.keys(one).length === 0;

function recordOf(ctx: CallContext<ReplayDeps>, chainId: string): ReadRecord {
  return async () => {
    const found = await written(ctx, chainId);
    return found.ok ? ok(found.value.text) : found;
  };
}

async function replay(
  ctx: CallContext<ReplayDeps>,
  { chainId, repeat = 1, ...changes }: ParamsOf<"chains.replay">,
): Promise<Result<PayloadOf<"chains.replay">>> {
  const { caller, deps } = ctx;
  const isChanged = Object.values(changes).some((one) => typeof one === "string" || !isEmpty(one));
  const variation = isChanged ? { ...NO_VARIATION, ...changes } : undefined;
  const wanted = { record: recordOf(ctx, chainId), repeat, ...optional({ variation }) };
  const stop = new AbortController();
  // A second request is refused, and must not take the first one's stop away.
  if (!working.has(caller)) working.set(caller, stop);
  const signal = AbortSignal.any([ctx.signal, stop.signal]);
  const progress = (at: number, done: number, total: number): void =>
    deps.tellReplay(caller, { chainId, replay: at, of: repeat, done, total });
  const replayed = (await deps.replays?.replay(wanted, { signal, progress })) ?? NONE;
  if (working.get(caller) === stop) working.delete(caller);
  return replayed.ok
    ? ok(await redacted({ chainId, replays: replayed.value }, deps.world.redactor))
    : replayed;
}

export const replayMethods: Methods<"chains.replay" | "chains.replay.stop" | "chains.diff", ReplayDeps> = {
  "chains.replay": { handle: replay },
  "chains.replay.stop": {
    async handle({ caller }) {
      const stop = working.get(caller);
      stop?.abort();
      return ok({ ok: true, stopped: stop !== undefined });
    },
  },
  "chains.diff": {
    async handle(ctx, { a, b }) {
      const { deps, signal } = ctx;
      const records = [a, b].map((chainId) => recordOf(ctx, chainId));
      const diff = (await deps.replays?.compare(records, signal)) ?? NONE;
      return diff.ok ? ok(await redacted(diff.value, deps.world.redactor)) : diff;
    },
  },
};
