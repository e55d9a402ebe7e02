// How the program is built: for the package (`npm pack`), and for a checkout, which runs what was built of
// just the files that it has (bin/freshness.js), and src as it is otherwise.
// B1: main and app stand at the top of dist and all else one folder below, as in src: what finds other files
//     beside it (its workers, package.json, the page, the folder that a sandbox sees) finds them in both.
// B2: the browser's client is one file and reaches nothing of Node: the build fails on an import that is left.
// B3: a library that every start needs is built in: read as one file, of which only what is used, it costs a
//     third of the time and memory of its many files. What one call may need stays where npm put it.

import { defineConfig } from "tsdown";

const COMMON = {
  format: "esm",
  fixedExtension: false,
  sourcemap: false,
  report: false,
} as const;

const BUILT_IN = ["@hono/node-server", "commander", "hono", "json5", "kysely", "pino", "ws", "zod"];

export default defineConfig([
  {
    ...COMMON,
    name: "program",
    entry: {
      main: "src/main.ts",
      app: "src/app.ts",
      "parts/file-worker": "src/tools/file-worker.ts",
      "parts/sqlite-aside-worker": "src/store/sqlite-aside-worker.ts",
    },
    platform: "node",
    target: "node24",
    // Their own dependencies come with them.
    deps: { alwaysBundle: BUILT_IN.map((name) => new RegExp(`^${name}(/|$)`)), onlyBundle: false },
    // V8 keeps the sources of what is loaded: comments would be a megabyte of them.
    outputOptions: { chunkFileNames: "parts/[name].js", comments: { legal: true, annotation: false, jsdoc: false } },
    dts: false,
    // The page is made by another.
    clean: ["dist/*", "!dist/ui"],
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
