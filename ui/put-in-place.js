// Moves the output of a build into dist. Plain JavaScript, like its users.
// A reader of dist finds the old or the new output, complete, except for a short moment in between. Two
// builds at the same time do not mix their files: each builds in a separate folder first.

import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const BEGINNING = ".new-";
/** Error codes of a rename onto an existing folder. */
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
      // Another build has just removed it, and will move its own output there.
      if (error.code !== "ENOENT") throw error;
    }
  }
}

/**
 * Lets `make` fill a new folder, then moves each entry of it into `dist`, replacing an entry of the same
 * name. Resolves with the names.
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

/** Removes all entries of `dist` except `names` and folders of running builds. */
export function keepOnly(dist, names) {
  for (const name of readdirSync(dist)) {
    if (names.includes(name) || name.startsWith(BEGINNING)) continue;
    rmSync(join(dist, name), { recursive: true, force: true });
  }
}
