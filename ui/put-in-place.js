// Moves the output of a build into dist. Plain JavaScript, like the scripts that use it.
// Except for a short moment, a reader of dist finds either the complete old output or the complete new
// output. Two builds at the same time do not mix their files, because each builds in a folder of its own
// first.

import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const BEGINNING = ".new-";
/** Error codes of a rename to an existing folder. */
const OCCUPIED = ["ENOTEMPTY", "EEXIST", "EPERM"];

function replace(from, to, aside) {
  for (let tries = 1; ; tries += 1) {
    try {
      renameSync(from, to);
      return;
    } catch (error) {
      if (!OCCUPIED.includes(error.code) || tries === 100) throw error;
    }
    try {
      renameSync(to, join(mkdtempSync(join(aside, "old-")), "it"));
    } catch (error) {
      // Another build has just removed the entry, and will move its own output there.
      if (error.code !== "ENOENT") throw error;
    }
  }
}

/**
 * Calls `make` with a new folder to fill, then moves each entry of that folder into `dist`, where it replaces
 * the entry of the same name. Resolves with the names.
 */
export async function putInPlace(dist, make) {
  mkdirSync(dist, { recursive: true });
  const made = mkdtempSync(join(dist, BEGINNING));
  try {
    await make(made);
    const names = readdirSync(made);
    for (const name of names) replace(join(made, name), join(dist, name), made);
    return names;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Removes all entries of `dist` except `names` and the folders of builds that are still running. */
export function keepOnly(dist, names) {
  for (const name of readdirSync(dist)) {
    if (names.includes(name) || name.startsWith(BEGINNING)) continue;
    rmSync(join(dist, name), { recursive: true, force: true });
  }
}
