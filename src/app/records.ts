// Keeps the inputs of runs for `store.recordDays`, and the records of finished chains for `store.retention`.
// Part of the composition root.

import { sweep } from "../channels/sweep.ts";
import { withoutSecrets } from "../config/recorded.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Commit } from "../engine/unit.ts";
import { Recorder, STORE_AGAIN_MS } from "../execute/recorder.ts";
import { pruneStep } from "../store/queries/chains/prune.ts";
import { forgetRevisions } from "../store/queries/runs/revisions.ts";
import type { World } from "../world.ts";

const DAY_MS = 24 * 3_600_000;
const FORGET_EVERY_MS = 6 * 3_600_000;
const PRUNE_EVERY_MS = 60_000;

export function recorderOfRuns({ version, world }: { version: string; world: World }): Recorder {
  return new Recorder({ version, withoutSecrets, now: () => world.clock.now() });
}

/** Deletes unused inputs periodically. The returned function stops it. */
export function forgetRecords(parts: { settings: Settings; commit: Commit; world: World }) {
  const { settings, commit, world } = parts;
  const failed = "old prompts and settings of runs could not be deleted";
  const keptMs = (settings.store.recordDays ?? 0) * DAY_MS + STORE_AGAIN_MS;
  return sweep({ commit, world, everyMs: FORGET_EVERY_MS, failed }, (unit) =>
    forgetRevisions(unit.tx, unit.now - keptMs),
  );
}

/** Deletes the records of old chains in small steps. The returned function stops it. */
export function forgetChains(parts: { settings: Settings; commit: Commit; world: World }) {
  const { settings, commit, world } = parts;
  const failed = "old records of chains could not be deleted";
  return sweep({ commit, world, everyMs: PRUNE_EVERY_MS, failed }, async (unit) => {
    const { retention = 0 } = settings.store;
    if (retention > 0) await pruneStep(unit.tx, unit.now - retention * DAY_MS);
  });
}
