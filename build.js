// Updates dist in a checkout: the program, which then starts in half the time, and the web page. With
// `--if-stale` it builds only the parts that are outdated. It is plain JavaScript, because npm runs it after
// `npm install`, on any Node.

import { fileURLToPath } from "node:url";
import { forgetMadeOf, isFresh, madeOf, noteMadeOf } from "./bin/freshness.js";
import { buildPage } from "./ui/build.js";
import { keepOnly, putInPlace } from "./ui/put-in-place.js";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const DIST = fileURLToPath(new URL("dist", import.meta.url));

/**
 * Builds the program. Returns false if the build tools are not installed (an install without
 * devDependencies).
 */
async function buildProgram(ifStale) {
  if (ifStale && isFresh(ROOT)) return true;
  const tsdown = await import("tsdown").catch((error) => {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  });
  if (tsdown === undefined) return false;
  // Record the files before the build, so that a file that changes during the build makes the build stale.
  const files = madeOf(ROOT);
  const wanted = { cwd: ROOT, config: "tsdown.config.ts", filter: ["program"], logLevel: "warn" };
  const names = await putInPlace(DIST, async (outDir) => {
    await tsdown.build({ ...wanted, outDir });
    forgetMadeOf(ROOT);
  });
  // Keep the folder `ui`: the page is built separately.
  keepOnly(DIST, [...names, "ui"]);
  noteMadeOf(ROOT, files);
  return true;
}

const ifStale = process.argv.includes("--if-stale");
// If the build tools are missing, the program runs directly from the sources, so this needs no message.
await buildProgram(ifStale);
if (!(await buildPage({ ifStale })))
  process.stderr.write("The web page was not built, because vite is not installed. Run npm install.\n");
