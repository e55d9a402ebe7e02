// Checks whether the build in dist matches src: then a checkout runs the build, which starts in half the
// time. Used by checkouts only (bin/parley.js); the build records its sources (build.js).
// The whole build is stale if one file was changed or removed since the build began. A new file matters
// only if a changed file uses it.

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NOTE = "dist/made-of.json";
/** Libraries in the build come from these; npm rewrites the second on every change. */
const MADE_OF = ["package.json", "package-lock.json", "tsdown.config.ts", "node_modules/.package-lock.json"];

function stateOf(path) {
  // Some installers do not write all of these: a missing file is a valid state.
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? "none" : `${found.size} ${found.mtimeMs}`;
}

/** Returns the current sources of the program: each file with its size and time. */
export function madeOf(root) {
  const sources = readdirSync(join(root, "src"), { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `src/${name.replaceAll("\\", "/")}`);
  return Object.fromEntries([...MADE_OF, ...sources].map((name) => [name, stateOf(join(root, name))]));
}

/** Records the sources of the program that is now in dist. */
export function noteMadeOf(root, files) {
  writeFileSync(join(root, NOTE), JSON.stringify(files));
}

/** Removes the record, because the contents of dist are about to change. */
export function forgetMadeOf(root) {
  rmSync(join(root, NOTE), { force: true });
}

/** Returns true if the build in dist was made of exactly the current files. */
export function isFresh(root) {
  try {
    const files = JSON.parse(readFileSync(join(root, NOTE), "utf8"));
    return Object.entries(files).every(([name, state]) => stateOf(join(root, name)) === state);
  } catch {
    return false;
  }
}
