// Builds the web page. With `--if-stale`, only if a source file is newer than the built page. Plain
// JavaScript, because npm runs it after `npm install` with any version of Node.

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { putInPlace } from "./put-in-place.js";

const at = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const DIST = at("../dist");
const BUILT = at("../dist/ui/index.html");
const MADE_OF = ["./", "../src/core/", "../src/gateway/", "../package-lock.json"].map(at);

function newest(path) {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(`${path}/${name}`)));
}

function isStale() {
  const built = statSync(BUILT, { throwIfNoEntry: false });
  return built === undefined || MADE_OF.some((path) => newest(path) > built.mtimeMs);
}

/** Builds dist/ui if necessary. Resolves to false if Vite is missing (an install without devDependencies). */
export async function buildPage({ ifStale = false } = {}) {
  if (ifStale && !isStale()) return true;
  const vite = await import("vite").catch((error) => {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  });
  if (vite === undefined) return false;
  // Vite reads NODE_ENV. With the value that a test runner sets, it would build a development page.
  const before = process.env.NODE_ENV;
  process.env.NODE_ENV = "production";
  try {
    await putInPlace(DIST, (made) =>
      vite.build({
        configFile: at("vite.config.ts"),
        build: { outDir: join(made, "ui"), emptyOutDir: true },
      }),
    );
  } finally {
    if (before === undefined) delete process.env.NODE_ENV;
    else process.env.NODE_ENV = before;
  }
  return true;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = await buildPage({ ifStale: process.argv.includes("--if-stale") });
  if (!built) process.stderr.write("The web page was not built: vite is not installed. Run npm install.\n");
}
