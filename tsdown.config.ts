// Builds the program: for the package (`npm pack`), and for a checkout, which runs the build if it was built
// from exactly the current files (bin/freshness.js), and otherwise src.
// B1: main and app are at the top of dist and all other files one folder below, as in src, so that relative
// paths (workers, package.json, the page, the folder that a sandbox shows) work in both.
// B2: the browser's client is one file without Node: the build fails on a remaining import.
// B3: a library that every start needs is bundled: one file with only the used parts costs a third of the
// time and memory of many files. Libraries for single calls stay in node_modules.
// The package must include the licences of bundled libraries: dist/licenses.md lists them.

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

/** Returns the package folder of a module. undefined: the module is ours. */
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

/** Writes the licences of the bundled libraries. */
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
      "parts/backup-worker": "src/store/transfer/backup-worker.ts",
      "parts/file-worker": "src/tools/files/file-worker.ts",
      "parts/read-worker": "src/store/sqlite/read-worker.ts",
    },
    platform: "node",
    target: "node24",
    plugins: [licenses],
    // Their dependencies are bundled, too.
    deps: { alwaysBundle: BUILT_IN.map((name) => new RegExp(`^${name}(/|$)`)), onlyBundle: false },
    // V8 keeps the sources of loaded modules: comments would need a megabyte.
    outputOptions: { chunkFileNames: "parts/[name].js", comments: { legal: true, annotation: false, jsdoc: false } },
    dts: false,
    // It is built elsewhere and then moved into place (build.js).
    clean: false,
  },
  {
    ...COMMON,
    name: "client",
    entry: { "client/node": "src/contract/client/node.ts" },
    platform: "node",
    target: "es2022",
    dts: true,
    clean: false,
  },
  {
    ...COMMON,
    name: "browser",
    entry: { "client/web": "src/contract/client/web.ts" },
    platform: "browser",
    target: "es2022",
    dts: false,
    clean: false,
  },
]);
