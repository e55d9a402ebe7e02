// Owns the methods that replay a chain from its record, and that compare two chains. A gateway does one of
// each at a time, in a process of its own and with a time limit. Only the asking connection gets the
// progress, and only it can stop its replay.

import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { oneAtATime } from "../../core/one-at-a-time.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { NO_VARIATION } from "../../core/shapes/record/variation.ts";
import type { Caller } from "../../gateway/auth.ts";
import type { CallContext, FeatureDeps, Methods } from "../../gateway/call.ts";
import { redacted, written } from "../../gateway/methods/chains/record.ts";
import { timeLimit } from "../../world/pause.ts";
import type { REPLAY_METHODS } from "./contract.ts";
import { diffInProcess, replayInProcess } from "./worker/process.ts";

type Context = CallContext<FeatureDeps>;

/** A replay that takes longer is ended. */
const REPLAY_MAX_MS = 10 * 60_000;

const BUSY = fail("rate_limited", "the gateway replays or compares chains already; wait for the end");
const TOO_LONG = fail("run_timeout", `the replay took longer than ${REPLAY_MAX_MS / 60_000} minutes`);
const ENDED = fail("run_aborted", "the replay was stopped, or its client disconnected");

/** The replays at work, by the connection that asked for them. */
const working = new WeakMap<Caller, AbortController>();
const [replaysAlone, comparesAlone] = [oneAtATime(BUSY), oneAtATime(BUSY)];

const isEmpty = (one: object): boolean => Object.keys(one).length === 0;

/** Does work until it is stopped, or for the time limit. */
async function withinLimit<T>(
  { deps: { world } }: Context,
  stop: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result<T>>,
): Promise<Result<T>> {
  using limit = timeLimit(world.clock, REPLAY_MAX_MS, { signal: stop });
  const done = await work(limit.signal);
  if (limit.late.aborted) return TOO_LONG;
  return stop.aborted ? ENDED : done;
}

async function replay(
  ctx: Context,
  { chainId, repeat = 1, ...changed }: ParamsOf<"chains.replay">,
): Promise<Result<PayloadOf<"chains.replay">>> {
  const { caller, deps } = ctx;
  const isChanged = Object.values(changed).some((one) => typeof one === "string" || !isEmpty(one));
  const variation = { ...NO_VARIATION, ...changed };
  const changes = isChanged ? { variation, providers: deps.settings.providers } : undefined;
  const stop = new AbortController();
  // A second request is refused, and must not take the first one's stop away.
  if (!working.has(caller)) working.set(caller, stop);
  const progress = (at: number, done: number, total: number): void =>
    deps.tell(caller, "replay", { chainId, replay: at, of: repeat, done, total });
  const ends = AbortSignal.any([ctx.signal, stop.signal]);
  const work = async (signal: AbortSignal) => {
    const record = await written(ctx, chainId);
    if (!record.ok) return record;
    const order = { record: record.value.text, repeat, ...optional({ changes }) };
    return signal.aborted ? ENDED : replayInProcess(order, { signal, progress });
  };
  const replayed = await replaysAlone(deps.engine, () => withinLimit(ctx, ends, work));
  if (working.get(caller) === stop) working.delete(caller);
  return replayed.ok
    ? ok(await redacted({ chainId, replays: replayed.value }, deps.world.redactor))
    : replayed;
}

export const replayMethods: Methods<keyof typeof REPLAY_METHODS, FeatureDeps> = {
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
      const work = async (signal: AbortSignal) => {
        const left = await written(ctx, a);
        if (!left.ok) return left;
        const right = await written(ctx, b);
        if (!right.ok) return right;
        return signal.aborted
          ? ENDED
          : diffInProcess({ a: left.value.text, b: right.value.text }, { signal });
      };
      const diff = await comparesAlone(ctx.deps.engine, () => withinLimit(ctx, ctx.signal, work));
      return diff.ok ? ok(await redacted(diff.value, ctx.deps.world.redactor)) : diff;
    },
  },
};
