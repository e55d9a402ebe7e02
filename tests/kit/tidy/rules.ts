// The rules for source files. Each rule is a function that returns complaints. tidy.test.ts runs the rules on
// the real files, and on small bad examples to prove that each rule can fail.

import type { ImportFact, SourceFact } from "./source-tree.ts";

export const FILE_LINES_MAX = 600;
export const FOLDER_FILES_MAX = 20;
export const LINE_CHARACTERS_MAX = 110;
/** Longer than the limit of other files, because of test titles and rows of tables. */
export const TEST_LINE_CHARACTERS_MAX = 140;

/**
 * The layers whose code each layer may load in addition to its own. Types may be imported from everywhere.
 * `main`, tests and bench may import everything.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  world: ["src/core/text/redact/redact.ts", "src/core/rules/outgoing.ts", "src/core/pace.ts"],
  config: ["core"],
  contract: ["core", "world"],
  store: ["core", "world"],
  agent: ["core", "world"],
  sandbox: ["core", "world"],
  engine: ["core", "world", "store"],
  telemetry: ["core", "world", "store", "engine", "agent"],
  access: ["core", "store", "engine"],
  flows: ["core", "store", "engine", "access", "src/world/folders.ts"],
  tools: [
    ...["core", "contract", "store", "sandbox", "access", "flows", "engine"],
    ...["bounded-body", "folders", "outgoing", "pause", "programs"].map((name) => `src/world/${name}.ts`),
  ],
  channels: ["core", "world", "store", "engine", "access", "flows"],
  triggers: ["core", "world", "store", "engine", "access", "flows"],
  gateway: [
    ...["core", "contract", "world", "store", "engine", "access", "flows", "tools"],
    ...["channels", "triggers"],
  ],
  cli: ["core", "config", "world", "contract"],
  ui: ["core", "contract"],
  feature: [],
  features: [
    ...["core", "world", "config", "contract", "store", "agent", "sandbox", "engine", "access", "flows"],
    ...["tools", "channels", "triggers", "gateway", "cli", "execute", "feature"],
    ...["src/app/engine-settings.ts", "src/app/records.ts"],
  ],
};

const FEATURE_LIST = "src/features.ts";
/** The layers that read the list of features. */
const READS_FEATURES = ["config", "contract", "store", "flows", "tools", "channels", "gateway", "cli"];

/** The layers that may use a package. Each library belongs to few layers. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  json5: ["config"],
  pino: ["world"],
  "@earendil-works/pi-ai": ["agent"],
  commander: ["cli"],
  "@clack/prompts": ["cli"],
  "@earendil-works/pi-tui": ["cli"],
  hono: ["gateway", "features"],
  "@hono/node-server": ["gateway"],
  ws: ["gateway", "contract"],
  "@modelcontextprotocol/client": ["tools"],
  "node:sqlite": ["store"],
  pg: ["store"],
  croner: ["features"],
  grammy: ["features"],
  "@opentelemetry/api": ["telemetry"],
  "@opentelemetry/resources": ["telemetry"],
  "@opentelemetry/sdk-trace": ["telemetry"],
  "@opentelemetry/exporter-trace-otlp-http": ["telemetry"],
  preact: ["ui"],
  "@preact/signals": ["ui"],
  "@discordjs/core": ["features"],
  "@discordjs/rest": ["features"],
  "@discordjs/ws": ["features"],
  marked: ["ui", "channels"],
  "sugar-high": ["ui"],
};

/** Layers that may import everything, and that no other layer may import. */
const ROOT_LAYERS = ["main", "app", "execute"];

/**
 * Returns the layer of a file: `core`, `config`, `main`, …, `ui`; undefined for other files. Both
 * config.ts and config/ are `config`.
 */
function layerOf(path: string): string | undefined {
  return /^ui\/src\//.test(path) ? "ui" : /^src\/([^/.]+)/.exec(path)?.[1];
}

export function importTable(tree: readonly SourceFact[]): string[] {
  return tree.flatMap(({ path, imports }) => {
    const layer = layerOf(path);
    if (layer === undefined || ROOT_LAYERS.includes(layer)) return [];
    if (MAY_IMPORT[layer] === undefined) return [`${path}: the folder ${layer} is not in the import table`];
    return imports.flatMap((one) => {
      const complaint = importProblem(layer, one);
      return complaint === undefined ? [] : [`${path}:${one.line}: ${complaint}`];
    });
  });
}

/** Packages of pure functions. */
const PURE_PACKAGES = ["diff"];

function importProblem(layer: string, { specifier, target, isType }: ImportFact): string | undefined {
  const forbidden = `${layer} must not import ${specifier}`;
  if (!specifier.startsWith(".")) {
    const [name = "", inner] = specifier.split("/");
    if (isType) return undefined;
    if (layer === "core") return PURE_PACKAGES.includes(name) ? undefined : `${forbidden}: core is pure`;
    const packageName = name.startsWith("@") ? `${name}/${inner}` : name;
    return PACKAGES[packageName]?.includes(layer) === false ? forbidden : undefined;
  }
  if (specifier.endsWith(".css")) return layer === "ui" ? undefined : forbidden;
  if (target === undefined) return `${specifier} is no source file`;
  if (target === FEATURE_LIST) return isType || READS_FEATURES.includes(layer) ? undefined : forbidden;
  const to = layerOf(target);
  const allowed = [layer, ...(MAY_IMPORT[layer] ?? [])];
  const fits = isType || allowed.includes(target) || (to !== undefined && allowed.includes(to));
  return fits ? undefined : forbidden;
}

/** Returns the feature to whose folder a file belongs, in the source, the tests or the page. */
const featureOf = (path: string): string | undefined =>
  /^(?:src|ui\/src|tests)\/features\/([^/.]+)/.exec(path)?.[1];

/** Returns the features that a feature's entry file names as its needs. */
function needsOf(tree: readonly SourceFact[], name: string): string[] {
  const entry = tree.find(({ path }) => path === `src/features/${name}/${name}.ts`);
  const [, list = ""] = /\bneeds: \[([^\]]*)\]/.exec(entry?.text ?? "") ?? [];
  return [...list.matchAll(/"([^"]+)"/g)].map(([, need = ""]) => need);
}

/**
 * Checks that only the lists of features and the features that need it know that a feature exists: not even
 * a type or a test of the kernel does.
 */
export function featureImports(tree: readonly SourceFact[]): string[] {
  return tree.flatMap(({ path, imports }) => {
    // The documents and the measurements are those of the whole product.
    if (path === FEATURE_LIST || path === "ui/src/features.ts" || /^(tests\/docs|bench)\//.test(path))
      return [];
    const own = featureOf(path);
    const known = own === undefined ? [] : [own, ...needsOf(tree, own)];
    return imports.flatMap(({ target = "", line }) => {
      const other = featureOf(target);
      return other === undefined || known.includes(other)
        ? []
        : [`${path}:${line}: knows the feature ${other}`];
    });
  });
}

/**
 * Checks that a folder has few files, and that three files with the same first word are in a folder of
 * their own. In test folders other than kit and sim, only the test files count.
 */
export function folders(paths: readonly string[]): string[] {
  const tests = Object.groupBy(
    paths.filter((path) => path.startsWith("tests/") && path.endsWith(".test.ts")),
    (path) => path.slice(0, path.lastIndexOf("/")),
  );
  const full = Object.entries(tests).flatMap(([folder, { length = 0 } = []]) =>
    length > FOLDER_FILES_MAX ? [`${folder}: ${length} files`] : [],
  );
  const byFolder = new Map<string, string[]>();
  for (const path of paths) {
    const [, folder, name] =
      /^((?:(?:ui\/)?src|tests\/(?:kit|sim))(?:\/.+)?)\/([^/]+)\.tsx?$/.exec(path) ?? [];
    if (folder !== undefined && name !== undefined && !name.endsWith(".test"))
      byFolder.set(folder, [...(byFolder.get(folder) ?? []), name]);
  }
  const crowded = [...byFolder].flatMap(([folder, names]) => {
    const words = Object.groupBy(names, (name) => /^[^-.]+/.exec(name)?.[0] ?? name);
    const shared = Object.entries(words).filter(([, same]) => (same?.length ?? 0) > 2);
    return [
      ...(names.length > FOLDER_FILES_MAX ? [`${folder}: ${names.length} files`] : []),
      ...shared.map(([word]) => `${folder}: the files that begin with "${word}" should be a folder`),
    ];
  });
  return [...full, ...crowded];
}

/** Finds files that load each other at their start. Types load nothing, and `import()` loads later. */
export function cycles(tree: readonly SourceFact[]): string[] {
  const next = new Map(
    tree.map(({ path, imports }) => [
      path,
      imports.flatMap(({ target, isType, isLate }) => (isType || isLate ? [] : (target ?? []))),
    ]),
  );
  const done = new Set<string>();
  const found: string[] = [];
  const walk = (path: string, above: readonly string[]): void => {
    const start = above.indexOf(path);
    if (start !== -1) found.push(`cycle: ${[...above.slice(start), path].join(" -> ")}`);
    if (start !== -1 || done.has(path)) return;
    for (const target of next.get(path) ?? []) walk(target, [...above, path]);
    done.add(path);
  };
  for (const { path } of tree) walk(path, []);
  return found;
}

const AMBIENT = new Set([
  "Date.now",
  "new Date()",
  "Date(",
  "Math.random",
  "performance.now",
  "performance.timeOrigin",
  "process.env",
  "process.hrtime",
  "process.uptime",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "AbortSignal.timeout",
]);
const RANDOM =
  /^(crypto\.)?(webcrypto\.)?(randomUUID|randomBytes|randomInt|randomFill|randomFillSync|getRandomValues)$/;
const TIMERS = /^(node:)?timers(\/promises)?$/;
const AMBIENT_FILES = ["src/world.ts", "src/world/plain.ts", "src/config.ts", "ui/src/clock.ts"];

export function ambientCalls(tree: readonly SourceFact[]): string[] {
  return tree
    .filter(({ path }) => /^(src|ui\/src)\//.test(path) && !AMBIENT_FILES.includes(path))
    .flatMap(({ path, references, imports }) => [
      ...references
        .filter(
          ({ text }) =>
            [...AMBIENT].some((name) => text === name || text.startsWith(`${name}.`)) || RANDOM.test(text),
        )
        .map(({ text, line }) => `${path}:${line}: ${text.replace(/\($/, "")} belongs in world.ts`),
      ...imports.flatMap(({ specifier, names, line }) => {
        if (TIMERS.test(specifier)) return [`${path}:${line}: ${specifier} belongs in world.ts`];
        const taken = names === "all" ? [] : names;
        const bad = taken.filter(
          (name) => RANDOM.test(name) || (name === "env" && specifier === "node:process"),
        );
        return bad.map((name) => `${path}:${line}: ${name} of ${specifier} belongs in world.ts`);
      }),
    ]);
}

/** The only file that may make outgoing HTTP requests, and the file that imports Node's HTTP module. */
const OUTGOING = ["src/world/outgoing.ts", "src/world/http.ts"];
/** These files only create servers. */
const SERVERS = ["src/gateway/server.ts", "src/gateway/http/unready.ts"];
const HTTP_MODULE = /^(node:)?(http|https|http2)$|^undici$/;
const HTTP_CALLS = ["all", "default", "request", "get", "fetch", "connect"];
const HTTP_NAMES = ["fetch", "XMLHttpRequest", "EventSource", "process.getBuiltinModule"];

export function outgoingCalls(tree: readonly SourceFact[]): string[] {
  return tree
    .filter(({ path }) => path.startsWith("src/") && !OUTGOING.includes(path))
    .flatMap(({ path, references, imports }) => {
      const taken = imports.flatMap(({ specifier, names, line, target }) => {
        const all = names === "all" ? ["all"] : names;
        const isOurs = target === "src/world/http.ts" && !SERVERS.includes(path);
        const isBad =
          isOurs || (HTTP_MODULE.test(specifier) && all.some((name) => HTTP_CALLS.includes(name)));
        return isBad ? [{ text: specifier, line }] : [];
      });
      const named = references.filter(({ text }) =>
        HTTP_NAMES.some((name) => text === name || text.startsWith(`${name}.`)),
      );
      const lines = [...taken, ...named].map(
        ({ text, line }) => `${path}:${line}: ${text}: outgoing HTTP goes through world/outgoing.ts`,
      );
      return [...new Set(lines)];
    });
}

const MOCKS = /^(vi|jest|mock)\.(mock|doMock|unmock|doUnmock|hoisted|spyOn|module|stubGlobal)\($/;
const FOCUSED = /^(test|it|describe|suite)(\.\w+)*\.only\b/;
const SKIPPED = /^(test|it|describe|suite)(\.\w+)*\.(skip|todo|skipIf|runIf|fails)\b/;

export function mocksAndSkips(tree: readonly SourceFact[]): string[] {
  return tree.flatMap(({ path, text, references }) => {
    const lines = text.split("\n");
    // The comment with the reason is on the same line or the line above.
    const hasReason = (line: number) => /\/\/ \S/.test(`${lines[line - 1]}\n${lines[line - 2] ?? ""}`);
    const complaints = references.flatMap(({ text: name, line }) => {
      const plain = name.replace(/\($/, "");
      if (MOCKS.test(name)) return [`${path}:${line}: ${plain}: drive real parts through fake edges`];
      if (FOCUSED.test(name)) return [`${path}:${line}: ${plain} leaves out every other test`];
      if (SKIPPED.test(name) && !hasReason(line))
        return [`${path}:${line}: ${plain} without a reason beside it`];
      return [];
    });
    return [...new Set(complaints)];
  });
}

const READERS =
  "innerText|allInnerTexts|textContent|count|inputValue|getAttribute|title|content|is(?:Visible|Enabled|Checked)";
/** An assertion on what a locator or the page shows, and the beginning of its matcher. */
const READ = new RegExp(
  String.raw`\bexpect\(\s*await\s[^;]*?\.(?:${READERS})\([^;]*?\)\s*,?\s*\)\s*\.(not\.)?to`,
  "g",
);

/**
 * Finds tests of the page that read it once, right after an action, instead of polling. Something absent may
 * be read once.
 */
export function singleReads(tree: readonly SourceFact[]): string[] {
  return tree
    .filter(({ path }) => path.startsWith("tests/ui/"))
    .flatMap(({ path, text }) =>
      [...text.matchAll(READ)]
        .filter(([all, not]) => not === undefined && !all.includes(".evaluate"))
        .map(({ index }) => `${path}:${text.slice(0, index).split("\n").length}: poll: expect.poll(() => …)`),
    );
}

const TOKENS = "ui/src/styles/tokens.css";
/** Values that a style sheet takes from the tokens. Spaces below 4 px only correct a place. */
const RAW_VALUES = [
  /#[\da-f]{3,8}\b(?=[^{]*$)|\b(rgba?|hsla?|hwb|lab|lch|oklab|oklch|color|light-dark)\(/i,
  /\bfont(-size)?:\s*([a-z]+ )*[\d.]+(px|em|rem|pt|%)/,
  /\b(padding|margin|gap)(-\w+)*:[^;]*?(?<![\d.])([4-9]|[1-4]\d)(\.\d+)?px/,
];

/** Finds raw values in the page's style sheets, and names of values that are not defined. */
export function rawStyles(texts: ReadonlyMap<string, string>): string[] {
  const ours = [...texts].filter(([path]) => path.startsWith("ui/src/"));
  const defined = new Set(ours.flatMap(([, text]) => text.match(/--[\w-]+(?="?:)/g) ?? []));
  return ours
    .filter(([path]) => path.endsWith(".css"))
    .flatMap(([path, text]) =>
      text.split("\n").flatMap((line, at) => {
        const raw = path === TOKENS ? undefined : RAW_VALUES.find((value) => value.test(line));
        const lost = (line.match(/(?<=var\()--[\w-]+/g) ?? []).filter((name) => !defined.has(name));
        return [
          ...(raw === undefined ? [] : [`${path}:${at + 1}: ${line.trim()}: use a value of ${TOKENS}`]),
          ...lost.map((name) => `${path}:${at + 1}: nothing defines ${name}`),
        ];
      }),
    );
}

/** The module that programs in browsers import. */
const BROWSER_ENTRY = "src/contract/client/web.ts";

/** The scripts of bench that a command of package.json starts, or another program. */
const BENCHES = [
  "acp bench cluster conformance conformance-a2a conformance-acp conformance-mcp crashes drawings",
  "import-source labels-table load",
  "mcp-client mcp-fixtures mcp-questions model-ways models-table openai-clients peers plugins postgres recording",
  "screenshots",
  "sign-ins trips wake-each woken",
].flatMap((names) => names.split(" ").map((name) => `bench/${name}.ts`));

/** The module that the build of the page puts in place of its own. */
const BUILD_ENTRY = "ui/src/preload.ts";

/** Returns true if a file is started or read by its path. Such a file need not be imported. */
const isEntry = (path: string): boolean =>
  path === "src/main.ts" ||
  path === "ui/src/main.tsx" ||
  ["ui/src/early.ts", "ui/src/early/request.ts", BUILD_ENTRY].includes(path) ||
  path === "ui/vite.config.ts" ||
  /^ui\/src\/features\/[^/]+\/worker\.ts$/.test(path) ||
  /^ui\/(build|put-in-place)\.(js|d\.ts)$/.test(path) ||
  path === BROWSER_ENTRY ||
  path === "vitest.config.ts" ||
  /^tests\/setup(-deep|-file)?\.ts$/.test(path) ||
  path === "tests/ui/node-fetch.d.ts" ||
  path === "tests/glob.d.ts" ||
  /^tests\/features\/[^/]+\/(store-contract|cluster-contract|plans|limits|grants|place)\.ts$/.test(path) ||
  BENCHES.includes(path) ||
  /^bench\/by-hand-[a-z-]+\.ts$/.test(path) ||
  path === "tests/fuzz/fuzz.ts" ||
  path === "tests/sim/run.ts" ||
  path === "tests/words.ts" ||
  path === "tests/without.ts" ||
  path === "tests/size.ts" ||
  path === "tests/features/acp/tap.ts" ||
  path.startsWith("site/.vitepress/") ||
  path.startsWith("bin/") ||
  path.endsWith(".test.ts");

export function unusedFiles(tree: readonly SourceFact[]): string[] {
  const next = new Map(
    tree.map(({ path, imports }) => [path, imports.flatMap(({ target }) => target ?? [])]),
  );
  const reach = (entries: readonly string[]): Set<string> => {
    const seen = new Set(entries);
    for (const path of seen) for (const target of next.get(path) ?? []) seen.add(target);
    return seen;
  };
  const paths = tree.map(({ path }) => path);
  const product = reach(paths.filter((path) => isEntry(path) && /^(src|bin|ui)\//.test(path)));
  const everything = reach(paths.filter(isEntry));
  return paths
    .filter((path) => !(/^(src|ui)\//.test(path) ? product : everything).has(path))
    .map((path) => `${path}: nothing that is started uses it`);
}

/**
 * Finds exports that no other file uses. A type may be used by its own file only, because another export may
 * contain it.
 */
export function unusedExports(tree: readonly SourceFact[]): string[] {
  const used = new Map<string, Set<string>>();
  for (const { imports } of tree) {
    for (const { target, names } of imports) {
      if (target === undefined) continue;
      const known = used.get(target) ?? new Set();
      for (const name of names === "all" ? ["*"] : names) known.add(name);
      used.set(target, known);
    }
  }
  return tree
    .filter(
      ({ path }) =>
        (path.startsWith("src/") && path !== "src/main.ts" && path !== BROWSER_ENTRY) ||
        (path.startsWith("ui/src/") && path !== BUILD_ENTRY) ||
        path.startsWith("tests/kit/"),
    )
    .flatMap(({ path, exports }) =>
      exports
        .filter(({ name, isType, usedHere }) => {
          const names = used.get(path);
          // The types of the client's package name this class.
          if (path === "src/store/records.ts" && name === "Records") return false;
          return !names?.has("*") && !names?.has(name) && !(isType && usedHere);
        })
        .map(({ name, line }) => `${path}:${line}: nobody imports ${name}`),
    );
}

export function sizes(tree: readonly SourceFact[]): string[] {
  return tree.flatMap(({ path, text }) => {
    const lengthMax = path.startsWith("tests/") ? TEST_LINE_CHARACTERS_MAX : LINE_CHARACTERS_MAX;
    const lines = text.replace(/\n$/, "").split("\n");
    const long = lines.flatMap((line, index) => {
      const length = [...line].length;
      return length > lengthMax ? [`${path}:${index + 1}: ${length} characters`] : [];
    });
    return [...(lines.length > FILE_LINES_MAX ? [`${path}: ${lines.length} lines`] : []), ...long];
  });
}

export function headsAndFolders(tree: readonly SourceFact[]): string[] {
  return tree.flatMap(({ path, text }) => {
    const body = text.replace(/^#!.*\n/, "");
    const folder = /(^|\/)(utils|helpers|common)(\/|\.tsx?$)/.test(path);
    return [
      ...(/^(\/\/ \S|\/\*\*? \S)/.test(body) || !/^(src|ui\/src)\//.test(path)
        ? []
        : [`${path}: begins without a comment on what it owns`]),
      ...(folder ? [`${path}: name the concept instead of utils, helpers or common`] : []),
    ];
  });
}

/** The build puts a worker into the folder of the module that starts the worker, as in the source. */
const WORKER = /new URL\(\s*"\.\/([^"]+\.ts)",\s*import\.meta\.url/g;
const COMMENT = /(?<=^|\s)(?:\/\/|\*)\s(.*)$/gm;
const NAMED_FILE = /(?<![\w./@`-])((?:[\w-]+\/)*[\w-]+\.tsx?)\b/g;
const NAMED_PART =
  /(?<![\w./@-])((?:core|store|engine|access|flows|channels|gateway|cli)\/[\w-]+(?:\/[\w-]+)*)(?![\w./:-])/g;

/** Finds workers that a module starts by their URL but that the build does not contain. */
export function unbuiltWorkers(tree: readonly SourceFact[], build: string): string[] {
  return tree
    .filter(({ path }) => path.startsWith("src/"))
    .flatMap(({ path, text }) =>
      [...text.matchAll(WORKER)].map(([, name = ""]) => `${path.replace(/[^/]+$/, "")}${name}`),
    )
    .filter((worker) => !build.includes(`"parts/${/[^/]+(?=\.ts$)/.exec(worker)?.[0]}": "${worker}"`));
}

/** Finds files and folders that a comment names but that do not exist. */
export function lostMentions(tree: readonly SourceFact[], paths: readonly string[]): string[] {
  const ends = new Set<string>();
  for (const path of paths) {
    const steps = path.split("/");
    for (const at of steps.keys()) {
      ends.add(steps.slice(at).join("/"));
      ends.add(
        steps
          .slice(at)
          .join("/")
          .replace(/\.tsx?$/, ""),
      );
      ends.add(
        steps
          .slice(0, at)
          .join("/")
          .replace(/^src\//, ""),
      );
    }
  }
  return tree
    .filter(({ path }) => /^(src|ui\/src)\//.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(COMMENT)].flatMap(([, words = ""]) =>
        [...words.matchAll(NAMED_FILE), ...words.matchAll(NAMED_PART)]
          .filter(([, name = ""]) => !ends.has(name))
          .map(([, name]) => `${path}: ${name} does not exist`),
      ),
    );
}

/**
 * Returns the rule numbers in the first comment of a file. The product's invariants (I1, I2, …) are valid
 * in all files.
 */
const rulesIn = (text: string): string[] =>
  [...text.matchAll(/^\/\/.*$/gm)].flatMap(([line]) =>
    [...line.matchAll(/(?<=^\/\/ |\. )([A-Z]{1,3}\d+):/g)].map(([, id = ""]) => id),
  );

/**
 * Finds rule numbers that another file cites without naming their file. Many files use the same numbers, so
 * the name is needed.
 */
export function namedRules(tree: readonly SourceFact[]): string[] {
  const owners = new Map<string, string[]>();
  const sources = tree.filter(({ path }) => /^(src|ui\/src)\//.test(path));
  for (const { path, text } of sources) {
    for (const id of rulesIn(text)) owners.set(id, [...(owners.get(id) ?? []), path]);
  }
  const foreign = sources.flatMap(({ path, text }) => {
    const comments = [...text.matchAll(COMMENT)]
      .map(([, words]) => words)
      .join(" ")
      .replace(/\s+/g, " ");
    const mentions = comments.matchAll(
      /\b[A-Z]{1,3}\d+\b(?:(?:,| and| to) [A-Z]{1,3}\d+\b)*(?: of ([\w./-]*\w))?/g,
    );
    return [...mentions].flatMap(([words, file]) =>
      [...words.matchAll(/\b[A-Z]{1,3}\d+\b/g)]
        .filter(([id]) => !/^I\d/.test(id) && owners.has(id) && !owners.get(id)?.includes(path))
        .filter(
          ([id]) => file === undefined || !owners.get(id)?.some((owner) => `/${owner}`.endsWith(`/${file}`)),
        )
        .map(([id]) => `${path}: whose rule is ${id}? Write it like "${id} of ${owners.get(id)?.[0]}"`),
    );
  });
  const doubles = sources.flatMap(({ path, text }) => {
    const ids = rulesIn(text);
    return ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `${path}: two rules ${id}`);
  });
  const tests = tree.filter(({ path }) => path.startsWith("tests/"));
  const titles = tests.flatMap(({ path, text }) =>
    [...text.matchAll(/^\s*test(?:\.\w+)*\(["`]([A-Z]{1,3}\d+(?:, [A-Z]{1,3}\d+)*):/gm)].flatMap(
      ([, ids = ""]) =>
        ids
          .split(", ")
          .filter((id) => !/^I\d/.test(id) && !owners.has(id))
          .map((id) => `${path}: no source file has a rule ${id}`),
    ),
  );
  return [...foreign, ...doubles, ...titles];
}

/**
 * Matches paths of a developer's machine. The pattern is assembled so that this file contains no such path.
 */
const MACHINE_PATH = new RegExp(
  `(?<![\\w.~/-])/(${["work", "root", "home/\\w+", "Users/\\w+"].join("|")})(/|\\b)`,
);

/** Finds paths of a developer's machine. `texts` contains every text file of the repository by its path. */
export function machinePaths(texts: ReadonlyMap<string, string>): string[] {
  return [...texts].flatMap(([path, text]) =>
    text.split("\n").flatMap((line, index) => {
      const found = MACHINE_PATH.exec(line);
      return found === null ? [] : [`${path}:${index + 1}: ${found[0]} is a path of one machine`];
    }),
  );
}

export function packageProblems(packageJson: string, lockFile: string): string[] {
  const manifest = JSON.parse(packageJson) as Record<string, Record<string, string> | undefined>;
  const pins = ["dependencies", "devDependencies", "optionalDependencies"].flatMap((section) =>
    Object.entries(manifest[section] ?? {})
      .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
      .map(([name, version]) => `package.json: ${name} is not pinned exactly: ${version}`),
  );
  const hosts = [...lockFile.matchAll(/"resolved": "(https?:\/\/[^/"]+)/g)].map(([, host]) => host);
  return [...pins, ...[...new Set(hosts)].map((host) => `package-lock.json: names the registry ${host}`)];
}
