// Owns how what a build made comes into dist. Plain JavaScript, as what uses it.
// PP1: whoever reads there finds what was there before or what is new, whole; between the two is a moment.
// PP2: two builds at once do not mix their files: each has a folder of its own until all of it is made.

import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const BEGINNING = ".new-";
/** What systems say of a folder that stands where another one is to be. */
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
      // Another build has just taken it away, and will put its own there.
      if (error.code !== "ENOENT") throw error;
    }
  }
}

/**
 * Has `make` fill a new folder, and puts each thing that is in it into `dist`, for what has its name there.
 * Resolves with the names.
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

/** Removes what is in `dist` and is none of these; what is being built there stays. */
export function keepOnly(dist, names) {
  for (const name of readdirSync(dist)) {
    if (names.includes(name) || name.startsWith(BEGINNING)) continue;
    rmSync(join(dist, name), { recursive: true, force: true });
  }
}
