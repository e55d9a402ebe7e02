// Watches one file for changes, also if an editor replaces it, and on file systems that report no changes.
// FW1: `changed` is called when the file has had the same size and date for a moment, so that a file which is
//      still being written is rarely read. A burst of changes causes one call.

import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { Clock, Timer } from "./plain.ts";

const QUIET_MS = 200;
const LOOK_MS = 5_000;

/** Describes the state of a file: two states with the same text have the same content. */
function stateOf(path: string): string {
  try {
    const { mtimeMs, ctimeMs, size, ino } = statSync(path);
    return [mtimeMs, ctimeMs, size, ino].join();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown";
  }
}

/** Returns a function that ends the watch. */
export function watchFile(path: string, clock: Clock, changed: () => void): () => void {
  let [told, seen] = [stateOf(path), ""];
  let timer: Timer | undefined;
  let watcher: FSWatcher | undefined;
  const arm = (ms: number): void => {
    timer?.cancel();
    timer = clock.after(ms, () => {
      const now = stateOf(path);
      const isQuiet = now === seen;
      seen = now;
      if (now !== told && isQuiet) {
        told = now;
        changed();
      }
      arm(now === told ? LOOK_MS : QUIET_MS);
    });
  };
  try {
    watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
      if (name === null || name === basename(path)) arm(QUIET_MS);
    });
    // The folder can be removed. The timer still looks at the file.
    watcher.on("error", () => watcher?.close());
  } catch {
    // Not every file system reports changes.
  }
  arm(LOOK_MS);
  return () => {
    timer?.cancel();
    watcher?.close();
  };
}
