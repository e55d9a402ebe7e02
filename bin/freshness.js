// Checks whether the build in dist matches src: then a checkout runs the build, which starts in half the
// time. Only checkouts use it (bin/parley.js); build.js records the source files. The build is stale if a
// recorded file was changed or removed since the build began. New files are ignored, because only a changed
// file can use them.

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NOTE = "dist/made-of.json";
/** Files that determine the libraries in the build; npm rewrites the second one whenever they change. */
const MADE_OF = ["package.json", "package-lock.json", "tsdown.config.ts", "node_modules/.package-lock.json"];

function stateOf(path) {
  // Some installers do not write all of these files, so a missing file is a valid state.
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? "none" : `${found.size} ${found.mtimeMs}`;
}

/** Lists the source files of the program with their sizes and times. */
export function madeOf(root) {
  const sources = readdirSync(join(root, "src"), { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `src/${name.replaceAll("\\", "/")}`);
  return Object.fromEntries([...MADE_OF, ...sources].map((name) => [name, stateOf(join(root, name))]));
}

/** Records the source files from which dist was built. */
export function noteMadeOf(root, files) {
  writeFileSync(join(root, NOTE), JSON.stringify(files));
}

/** Deletes that record, because the contents of dist are about to change. */
export function forgetMadeOf(root) {
  rmSync(join(root, NOTE), { force: true });
}

/** Returns whether dist was built from exactly the current files. */
export function isFresh(root) {
  try {
    const files = JSON.parse(readFileSync(join(root, NOTE), "utf8"));
    return Object.entries(files).every(([name, state]) => stateOf(join(root, name)) === state);
  } catch {
    return false;
  }
}
