// Builds the program: for the package (`npm pack`), and for a checkout, which runs the build if it was built
// from exactly the current files (bin/freshness.js), and otherwise src.
// B1: main and app are at the top of dist, as in src, and all other files one folder below. Thus relative
// paths (workers, package.json, the page, the folder that a sandbox shows) work in both.
// B2: the client for browsers is one file that needs no Node: the build fails if an import remains.
// B3: a library that every start needs is bundled. One file with only the used parts takes a third of the
// time and memory of many files. Libraries that only single calls need stay in node_modules. The package must
// include the licences of bundled libraries: dist/licenses.md lists them.
// B4: modules that are loaded together are in one file, because each file costs time and memory. By default
// the bundler makes one file for each combination of entries that share modules, which are hundreds. A group
// imports only itself and earlier groups, so no two files import each other.
// B5: ws loads TLS only for a connection with TLS, because loading takes 6 MB, and no server needs it.
// B6: the files are ASCII, because V8 keeps a source with any other character at two bytes for each character.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Rolldown } from "tsdown";

const COMMON = {
  format: "esm",
  fixedExtension: false,
  sourcemap: false,
  report: false,
} as const;

const BUILT_IN = ["@hono/node-server", "commander", "hono", "json5", "kysely", "pino", "ws"];

const WORKERS = {
  "parts/backup-worker": "src/store/transfer/backup-worker.ts",
  "parts/file-worker": "src/tools/files/file-worker.ts",
  "parts/read-worker": "src/store/sqlite/read-worker.ts",
  "parts/replay-worker": "src/features/replay/worker/replay-worker.ts",
};
const ENTRIES = { main: "src/main.ts", app: "src/app.ts", ...WORKERS };

/** Returns the package folder of a module, or undefined for a module of Parley. */
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

/** A plugin that writes the licences of the bundled libraries. */
const licenses: Rolldown.Plugin = {
  name: "licenses",
  generateBundle(_options, bundle) {
    const modules = Object.values(bundle).flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
    const folders = new Set(modules.map(packageOf).filter((folder) => folder !== undefined && existsSync(folder)));
    const source = `# Libraries in the program\n\n${[...folders].sort().map((folder) => licenseOf(folder as string)).join("\n")}`;
    this.emitFile({ type: "asset", fileName: "licenses.md", source });
  },
};

/** Modules that share a file of this name, or stay apart if it is null. The first group of a module counts. */
type Group = readonly [name: string | null, modules: ReadonlySet<string>];

let groups: readonly Group[] = [];

/** A plugin that forms the groups of modules. */
const grouping: Rolldown.Plugin = {
  name: "grouping",
  renderStart() {
    const idOf = (file: string): string => join(import.meta.dirname, file);
    const lazyOf = (id: string): string[] => this.getModuleInfo(id)?.dynamicallyImportedIds ?? [];
    const isApp = (id: string): boolean => id === idOf(ENTRIES.app);
    /** Returns the modules that these modules load, and themselves. With `later`, also those that a call loads. */
    const loadedBy = (ids: readonly string[], later = false): Set<string> => {
      const loaded = new Set(ids);
      for (const id of loaded) {
        const next = [...(this.getModuleInfo(id)?.importedIds ?? []), ...(later ? lazyOf(id) : [])];
        for (const one of next) if (!(later && isApp(one))) loaded.add(one);
      }
      return loaded;
    };
    const usesStore = (id: string): boolean => [...loadedBy([id])].some((one) => one.includes("/node_modules/kysely/"));

    const gateway = loadedBy([idOf(ENTRIES.app)]);
    const ofCommands = loadedBy([idOf(ENTRIES.main)], true);
    const smallParts = [...ofCommands].flatMap(lazyOf).filter((id) => !isApp(id) && !usesStore(id));
    const stores = loadedBy([idOf(WORKERS["parts/backup-worker"]), idOf(WORKERS["parts/replay-worker"])]);
    groups = [
      [null, new Set(Object.values(ENTRIES).map(idOf))],
      ["workers", loadedBy([idOf(WORKERS["parts/file-worker"]), idOf(WORKERS["parts/read-worker"])])],
      // Every command loads these.
      ["start", loadedBy([idOf(ENTRIES.main)])],
      // A command without a store must not load the engine.
      [null, loadedBy(smallParts)],
      ["engine", new Set([...stores].filter((id) => gateway.has(id)))],
      [null, new Set([...ofCommands, ...stores])],
      ["gateway", gateway],
    ];
  },
};

/** Statements of ws that load TLS, and statements that load it at the first use. */
const LATE_TLS = [
  ["const https = require('https');", "const https = { get request() { return require('https').request; } };"],
  ["const tls = require('tls');", "const tls = { get connect() { return require('tls').connect; } };"],
] as const;

/** A plugin that delays TLS (B5). */
const lateTls: Rolldown.Plugin = {
  name: "late-tls",
  transform: {
    filter: { id: /node_modules[\\/]ws[\\/]lib[\\/]websocket\.js$/ },
    handler(code) {
      return LATE_TLS.reduce((text, [early, late]) => {
        if (!text.includes(early)) throw new Error(`ws no longer contains ${early}`);
        return text.replace(early, late);
      }, code);
    },
  },
};

/** A plugin that escapes all characters outside of ASCII (B6). */
const ascii: Rolldown.Plugin = {
  name: "ascii",
  generateBundle(_options, bundle) {
    for (const part of Object.values(bundle)) {
      if (part.type !== "chunk") continue;
      part.code = part.code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    }
  },
};

export default defineConfig([
  {
    ...COMMON,
    name: "program",
    entry: ENTRIES,
    platform: "node",
    target: "node24",
    plugins: [licenses, grouping, lateTls, ascii],
    // The groups need it: an entry may export more than its module, for other files.
    // No warning about a module that one command loads late and another at its start: both are meant.
    inputOptions: { preserveEntrySignatures: "allow-extension", checks: { ineffectiveDynamicImport: false } },
    // Bundles these libraries and their dependencies.
    deps: { alwaysBundle: BUILT_IN.map((name) => new RegExp(`^${name}(/|$)`)), onlyBundle: false },
    // V8 keeps the sources of loaded modules in memory. Comments would take a megabyte of it.
    outputOptions: {
      chunkFileNames: "parts/[name].js",
      comments: { legal: true, annotation: false, jsdoc: false },
      codeSplitting: {
        groups: [{ debugName: "B4", name: (id) => groups.find(([, modules]) => modules.has(id))?.[0] ?? null }],
        includeDependenciesRecursively: false,
      },
    },
    dts: false,
    // The program is built in another folder and then moved into place (build.js).
    clean: false,
  },
  {
    ...COMMON,
    name: "client",
    entry: { "client/node": "src/contract/client/node.ts" },
    platform: "node",
    target: "es2022",
    dts: false,
    clean: false,
  },
  {
    // Apart from the client, because a build of types also emits the code of modules that only types name.
    // The compiler reads every file that the tsconfig includes: that of the checkout names the tests, too.
    ...COMMON,
    name: "types",
    tsconfig: "tsconfig.types.json",
    entry: { "client/node": "src/contract/client/node.ts" },
    dts: { emitDtsOnly: true },
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
