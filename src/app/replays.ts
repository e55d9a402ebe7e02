// Runs the replays and comparisons that clients ask for, one of each at a time, each in a process of its own
// and with a time limit.

import { optional } from "../core/optional.ts";
import { fail, type Result } from "../core/shapes/errors.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { ReplayDeps } from "../gateway/methods/chains/replay.ts";
import type { Clock, World } from "../world.ts";

/** A replay that takes longer is ended. */
const REPLAY_MAX_MS = 10 * 60_000;

const BUSY = fail("rate_limited", "the gateway replays or compares chains already; wait for the end");
const TOO_LONG = fail("run_timeout", `the replay took longer than ${REPLAY_MAX_MS / 60_000} minutes`);
const ENDED = fail("run_aborted", "the replay was stopped, or its client disconnected");

/** Returns a function that does one work at a time, with a time limit. */
function oneAtATime(clock: Clock) {
  let busy = false;
  return async <T>(
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<Result<T>>,
  ): Promise<Result<T>> => {
    if (busy) return BUSY;
    busy = true;
    const limit = new AbortController();
    const timer = clock.after(REPLAY_MAX_MS, () => limit.abort());
    try {
      const done = await work(AbortSignal.any([signal, limit.signal]));
      if (limit.signal.aborted) return TOO_LONG;
      return signal.aborted ? ENDED : done;
    } finally {
      timer.cancel();
      busy = false;
    }
  };
}

const processes = () => import("../replay/replay-process.ts");

export function replaysOf(parts: {
  readonly settings: Pick<Settings, "providers">;
  readonly world: Pick<World, "clock">;
}): NonNullable<ReplayDeps["replays"]> {
  const { clock } = parts.world;
  const [replaying, comparing] = [oneAtATime(clock), oneAtATime(clock)];
  return {
    replay: ({ record, variation, repeat }, watch) =>
      replaying(watch.signal, async (signal) => {
        const text = await record();
        if (!text.ok) return text;
        const changes = variation && { variation, providers: parts.settings.providers };
        const order = { record: text.value, repeat, ...optional({ changes }) };
        const { replayInProcess } = await processes();
        return signal.aborted ? ENDED : replayInProcess(order, { ...watch, signal });
      }),
    compare: (records, stop) =>
      comparing(stop, async (signal) => {
        const texts: string[] = [];
        for (const record of records) {
          const text = await record();
          if (!text.ok) return text;
          texts.push(text.value);
        }
        const [a = "", b = ""] = texts;
        const { diffInProcess } = await processes();
        return signal.aborted ? ENDED : diffInProcess({ a, b }, { signal });
      }),
  };
}
