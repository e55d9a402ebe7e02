// Owns whether what was built in dist is what src says: a checkout may then run it, and starts in half the
// time. Only a checkout asks (bin/parley.js), and the build writes it down (build.js).
// FR1: of one file that was changed, or is gone, since the build began, all that was built is stale. A new
//      file is used by none that was not changed.

import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NOTE = "dist/made-of.json";
/** The libraries that are built in come from there; npm writes the second at every change. */
const MADE_OF = ["package.json", "package-lock.json", "tsdown.config.ts", "node_modules/.package-lock.json"];

function stateOf(path) {
  // Not every installer writes all of these: one that is not there is as good a state as another.
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? "none" : `${found.size} ${found.mtimeMs}`;
}

/** What the program would be made of now: each file with its size and its time. */
export function madeOf(root) {
  const sources = readdirSync(join(root, "src"), { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `src/${name.replaceAll("\\", "/")}`);
  return Object.fromEntries([...MADE_OF, ...sources].map((name) => [name, stateOf(join(root, name))]));
}

/** Notes what the program that is in dist now was made of. */
export function noteMadeOf(root, files) {
  writeFileSync(join(root, NOTE), JSON.stringify(files));
}

/** What is in dist is about to be something else. */
export function forgetMadeOf(root) {
  rmSync(join(root, NOTE), { force: true });
}

/** True: what is in dist was made of exactly the files that are there now. */
export function isFresh(root) {
  try {
    const files = JSON.parse(readFileSync(join(root, NOTE), "utf8"));
    return Object.entries(files).every(([name, state]) => stateOf(join(root, name)) === state);
  } catch {
    return false;
  }
}
