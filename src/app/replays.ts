// Runs the replays that clients ask for, one at a time, each in a process of its own and with a time limit.

import { fail, type Result } from "../core/shapes/errors.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { ReplayDeps } from "../gateway/methods/chains/replay.ts";
import type { World } from "../world.ts";

/** A replay that takes longer is ended. */
const REPLAY_MAX_MS = 10 * 60_000;

const BUSY = fail("rate_limited", "the gateway replays a chain already; wait for its end");
const TOO_LONG = fail("run_timeout", `the replay took longer than ${REPLAY_MAX_MS / 60_000} minutes`);
const GONE = fail("run_aborted", "the client disconnected, so the replay was ended");

export function replaysOf({
  settings,
  world,
}: {
  readonly settings: Pick<Settings, "providers">;
  readonly world: World;
}): NonNullable<ReplayDeps["replay"]> {
  const { clock } = world;
  let busy = false;
  return async ({ record, variation, repeat }, { signal, progress }) => {
    if (busy) return BUSY;
    busy = true;
    const limit = new AbortController();
    const timer = clock.at(clock.now() + REPLAY_MAX_MS, () => limit.abort());
    try {
      const text: Result<string> = await record();
      if (!text.ok) return text;
      const { replayInProcess } = await import("../replay/replay-process.ts");
      const either = AbortSignal.any([signal, limit.signal]);
      if (either.aborted) return GONE;
      const changes = variation && { variation, providers: settings.providers };
      const order = { record: text.value, repeat, ...(changes === undefined ? {} : { changes }) };
      const replayed = await replayInProcess(order, { signal: either, progress });
      if (limit.signal.aborted) return TOO_LONG;
      return signal.aborted ? GONE : replayed;
    } finally {
      timer.cancel();
      busy = false;
    }
  };
}
