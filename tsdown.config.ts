// How the program is built: for the package (`npm pack`), and for a checkout, which runs what was built of
// just the files that it has (bin/freshness.js), and src as it is otherwise.
// B1: main and app stand at the top of dist and all else one folder below, as in src: what finds other files
//     beside it (its workers, package.json, the page, the folder that a sandbox sees) finds them in both.
// B2: the browser's client is one file and reaches nothing of Node: the build fails on an import that is left.
// B3: a library that every start needs is built in: read as one file, of which only what is used, it costs a
//     third of the time and memory of its many files. What one call may need stays where npm put it.
// B4: who passes the package on passes their licences on: dist/licenses.md has that of each library in it.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Rolldown } from "tsdown";

const COMMON = {
  format: "esm",
  fixedExtension: false,
  sourcemap: false,
  report: false,
} as const;

const BUILT_IN = ["@hono/node-server", "commander", "hono", "json5", "kysely", "pino", "ws", "zod"];

/** The folder of the package that a module is from; undefined for one of ours. */
function packageOf(id: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id.replaceAll("\\", "/"))?.[0];
}

function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, string>;
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  if (file === undefined && license === undefined) throw new Error(`${name} is built in and has no license`);
  const text = file === undefined ? "" : `\n\n${readFileSync(join(folder, file), "utf8").trim()}`;
  return `## ${name} ${version} (${license})${text}\n`;
}

/** Writes the licences of what was built in. */
const licenses: Rolldown.Plugin = {
  name: "licenses",
  generateBundle(_options, bundle) {
    const modules = Object.values(bundle).flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
    const folders = new Set(modules.map(packageOf).filter((folder) => folder !== undefined && existsSync(folder)));
    const source = `# Libraries in the program\n\n${[...folders].sort().map((folder) => licenseOf(folder as string)).join("\n")}`;
    this.emitFile({ type: "asset", fileName: "licenses.md", source });
  },
};

export default defineConfig([
  {
    ...COMMON,
    name: "program",
    entry: {
      main: "src/main.ts",
      app: "src/app.ts",
      "parts/file-worker": "src/tools/file-worker.ts",
      "parts/sqlite-read-worker": "src/store/sqlite-read-worker.ts",
    },
    platform: "node",
    target: "node24",
    plugins: [licenses],
    // Their own dependencies come with them.
    deps: { alwaysBundle: BUILT_IN.map((name) => new RegExp(`^${name}(/|$)`)), onlyBundle: false },
    // V8 keeps the sources of what is loaded: comments would be a megabyte of them.
    outputOptions: { chunkFileNames: "parts/[name].js", comments: { legal: true, annotation: false, jsdoc: false } },
    dts: false,
    // It is built aside and put in place then (build.js).
    clean: false,
  },
  {
    ...COMMON,
    name: "client",
    entry: { "client/node": "src/gateway/client.ts" },
    platform: "node",
    target: "es2022",
    dts: true,
    clean: false,
  },
  {
    ...COMMON,
    name: "browser",
    entry: { "client/web": "src/gateway/client/web.ts" },
    platform: "browser",
    target: "es2022",
    dts: false,
    clean: false,
  },
]);
