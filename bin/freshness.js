// Checks whether the build in dist matches src. If it does, a checkout runs the build, which starts in half
// the time. Only bin/parley.js in a checkout uses this check; build.js records the source files. The build is
// stale if a recorded file was changed or removed since the build began. New files are ignored, because only
// a changed file can use them.

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NOTE = "dist/made-of.json";
/**
 * Files that determine the libraries in the build. npm rewrites `package-lock.json` whenever the libraries
 * change.
 */
const MADE_OF = ["package.json", "package-lock.json", "tsdown.config.ts", "node_modules/.package-lock.json"];

function stateOf(path) {
  // A missing file is no error, because some installers do not write all of these files.
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

/** Deletes the record of `noteMadeOf`, because the contents of dist are about to change. */
export function forgetMadeOf(root) {
  rmSync(join(root, NOTE), { force: true });
}

/** Returns whether all files from which dist was built are unchanged. */
export function isFresh(root) {
  try {
    const files = JSON.parse(readFileSync(join(root, NOTE), "utf8"));
    return Object.entries(files).every(([name, state]) => stateOf(join(root, name)) === state);
  } catch {
    return false;
  }
}
