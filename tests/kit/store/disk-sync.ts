// Replaces the system call that syncs a file's content in this process, so that a test can delay it, let it
// fail or observe it.

import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

type Done = (error: NodeJS.ErrnoException | null) => void;

/** Runs in place of a sync. `real` executes the sync. */
type Replacement = (real: (done: Done) => void, done: Done) => void;

/** Replaces each asynchronous sync of a file's content. Returns a function that restores the original. */
export function replaceSync(replacement: Replacement): () => void {
  const real = fs.fdatasync;
  const put = (sync: typeof fs.fdatasync): void => {
    fs.fdatasync = sync;
    syncBuiltinESMExports();
  };
  const replaced = (handle: number, done: Done): void => {
    replacement((after) => real(handle, after), done);
  };
  put(Object.assign(replaced, { __promisify__: real.__promisify__ }));
  return () => put(real);
}

/**
 * Calls `begins` before each sync, blocking or not. Calls the function that it returned when the content is
 * on disk.
 */
export function watchSyncs(begins: () => () => void): void {
  replaceSync((real, done) => {
    const synced = begins();
    real((error) => {
      if (error === null) synced();
      done(error);
    });
  });
  const real = fs.fdatasyncSync;
  fs.fdatasyncSync = (handle) => {
    const synced = begins();
    real(handle);
    synced();
  };
  syncBuiltinESMExports();
}
