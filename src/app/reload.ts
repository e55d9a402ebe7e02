// Applies the configuration file whenever it changes, and reports the result. Part of the composition root.

import type { Reload } from "../config/reload.ts";
import type { EventPayloads } from "../contract/events.ts";
import { watchFile } from "../world/file-watch.ts";
import type { World } from "../world.ts";

/**
 * Compares what a part of the gateway runs with the settings, and starts and stops what differs. Called at
 * the start, and again after each change.
 */
export type Follower = () => Promise<void>;

export interface ReloadParts {
  readonly reload: Reload;
  readonly path: string;
  readonly world: World;
  /** Called one after the other after a change. */
  readonly parts: readonly Follower[];
  readonly tell: (event: EventPayloads["config"]) => void;
}

/** Follows the file. `look` reads it at once; `stop` ends the watch, and waits for the last change. */
export function followConfig({ reload, path, world, parts, tell }: ReloadParts) {
  const { log, redactor } = world;
  let last: Promise<void> = Promise.resolve();
  const read = (isFirst: boolean): void => {
    const result = reload.read();
    if ("problems" in result) {
      const why = redactor.mask(result.problems.join("; "));
      log.error({ why }, "the configuration file was not applied; the gateway keeps its settings");
      tell({ ok: false, changed: [], restart: [] });
      return;
    }
    const { changed, restart } = redactor.all(result);
    if (isFirst && changed.length === 0) return;
    if (changed.length > 0) log.info({ what: changed.join(", ") }, "the configuration was reloaded");
    if (restart.length > 0) log.warn({ what: restart.join(", ") }, "these settings apply after a restart");
    for (const part of parts) {
      last = last.then(part).catch((error: unknown) => {
        log.error({ err: error }, "a part of the gateway could not follow the new configuration");
      });
    }
    tell({ ok: true, changed: [...changed], restart: [...restart] });
  };
  const look = (): void => read(false);
  const unwatch = watchFile(path, world.clock, look);
  // The file may have changed after it was loaded, before the watch began.
  read(true);
  const stop = async (): Promise<void> => {
    unwatch();
    await last;
  };
  return { look, stop };
}
