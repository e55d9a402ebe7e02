// Brings dist up to date for a checkout: the program, so that it starts in half the time, and the web page.
// With `--if-stale` only what is older than what it is made of. Plain JavaScript: npm runs it after
// `npm install`, on whatever Node is there.

import { fileURLToPath } from "node:url";
import { forgetMadeOf, isFresh, madeOf, noteMadeOf } from "./bin/freshness.js";
import { buildPage } from "./ui/build.js";
import { keepOnly, putInPlace } from "./ui/put-in-place.js";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const DIST = fileURLToPath(new URL("dist", import.meta.url));

/** False: there is nothing to build with (an install without devDependencies). */
async function buildProgram(ifStale) {
  if (ifStale && isFresh(ROOT)) return true;
  const tsdown = await import("tsdown").catch((error) => {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  });
  if (tsdown === undefined) return false;
  // Looked at before: what is changed during the build makes it stale.
  const files = madeOf(ROOT);
  const wanted = { cwd: ROOT, config: "tsdown.config.ts", filter: ["program"], logLevel: "warn" };
  const names = await putInPlace(DIST, async (outDir) => {
    await tsdown.build({ ...wanted, outDir });
    forgetMadeOf(ROOT);
  });
  // The page is made by another.
  keepOnly(DIST, [...names, "ui"]);
  noteMadeOf(ROOT, files);
  return true;
}

const ifStale = process.argv.includes("--if-stale");
// Without it the sources are run as they are, which needs no word.
await buildProgram(ifStale);
if (!(await buildPage({ ifStale })))
  process.stderr.write("The web page is not built: vite is not installed here (npm install).\n");
