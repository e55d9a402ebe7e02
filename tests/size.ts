// Prints how large the project is: lines of each part, the widest imports, functions that may be inlined, and
// names that say too little.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readTree, type SourceFact } from "./kit/tidy/source-tree.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const INLINE_LINES_MAX = 8;
const ROWS = 10;

/**
 * The parts of `src` that have no folder in `src/features` yet, each with the names of its files and folders. The
 * first that fits counts. Everything else in cli and gateway belongs to these, and the rest is the kernel.
 */
const FEATURES: readonly (readonly [part: string, names: string])[] = [
  ["demo", "demo"],
  ["chat program", "chat"],
  ["offline model", "offline"],
  ["protocol 4", "version-4"],
  ["mcp", "mcp"],
  ["traces", "telemetry|traces"],
  ["approvals", "approvals?|approval-.*|permissions?|permission-.*"],
  ["attention", "attention"],
  ["memory and instructions", "guidance|memory|agent-memory|instructions?|instruction-.*"],
  ["files and exec", "files|exec|containment|named-files|bare-environment|free-line"],
  ["web tools", "web"],
  ["sandbox", "sandbox.*"],
  ["models", "model"],
];
const PATTERNS = FEATURES.map(([part, names]) => [part, new RegExp(`^(${names})$`)] as const);

function filesBelow(folder: string, ending: RegExp): Map<string, string> {
  const entries = readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true });
  const paths = entries
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length))
    .filter((path) => !/node_modules\/|\/dist\//.test(path));
  return new Map(paths.sort().map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
}

function partName(path: string): string {
  const [, feature] = /^src\/features\/([^/]+)/.exec(path) ?? [];
  if (feature !== undefined) return feature;
  const steps = path.replace(/\.ts$/, "").split("/").slice(1);
  if (/^cli\/(chat|commands\/chat)/.test(steps.join("/"))) return "chat program";
  for (const [part, pattern] of PATTERNS) {
    if (part !== "chat program" && steps.some((step) => pattern.test(step))) return part;
  }
  return steps[0] === "cli" || steps[0] === "gateway" ? steps[0] : "kernel";
}

const countLines = (text: string): number => text.replace(/\n$/, "").split("\n").length;
const format = (count: number): string => count.toLocaleString("en").padStart(9);

function printCounts(title: string, counts: ReadonlyMap<string, number>, rows = counts.size): void {
  console.log(`\n${title}`);
  const sorted = [...counts].sort(([, one], [, other]) => other - one);
  for (const [name, count] of sorted.slice(0, rows)) console.log(`${format(count)}  ${name}`);
}

function addTo(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count);
}

/** Returns true for a name of one word that is a participle, such as `found` or `stored`. */
const isParticiple = (name: string): boolean =>
  /^(?!(need|embed|feed|speed|seed|indeed|proceed|exceed|red|bed|shed)$)[a-z]+ed$/.test(name) ||
  /^(told|found|shown|said|sent|given|taken|kept|held|left|met|known|seen|written|made|gone|begun|lost)$/.test(
    name,
  );

const sources = filesBelow("src", /\.ts$/);
const tree = readTree(new Map([...sources, ...filesBelow("ui/src", /\.tsx?$/)]));
const source = tree.filter(({ path }) => path.startsWith("src/"));

const parts = new Map<string, number>();
for (const { path, text } of source) addTo(parts, partName(path), countLines(text));
const total = (files: ReadonlyMap<string, string>, count: (text: string) => number): number =>
  [...files.values()].reduce((sum, text) => sum + count(text), 0);
const kernel = parts.get("kernel") ?? 0;
const all = total(sources, countLines);
console.log(`${format(all)}  lines of src: kernel ${kernel}, features, gateway and cli ${all - kernel}`);
console.log(`${format(total(filesBelow("ui", /\.(tsx?|css)$/), countLines))}  lines of ui, with styles`);
console.log(`${format(total(filesBelow("tests", /\.tsx?$/), countLines))}  lines of tests`);
const pages = [...filesBelow("docs", /\.md$/)].filter(([path]) => !path.startsWith("docs/reference/"));
const countWords = (text: string): number => text.split(/\s+/).filter(Boolean).length;
console.log(`${format(total(new Map(pages), countWords))}  words of docs, without the reference`);
printCounts("Lines of each part of src", parts);

const widths = new Map<string, number>();
for (const { path, imports } of source) {
  const loaded = imports.filter(({ isType, target }) => !isType && target !== undefined);
  widths.set(path, new Set(loaded.map(({ target }) => target)).size);
}
printCounts("Files that load most others", widths, ROWS);

const countSmall = ({ functions }: SourceFact): number =>
  functions.filter((one) => !one.isExported && one.uses === 1 && one.lines < INLINE_LINES_MAX).length;
const small = new Map(source.map((fact) => [fact.path, countSmall(fact)]));
const smallTotal = [...small.values()].reduce((sum, count) => sum + count, 0);
printCounts(`Private functions used once, below ${INLINE_LINES_MAX} lines: ${smallTotal}`, small, ROWS);

const names = new Map<string, number>();
for (const { functions } of tree) {
  for (const { name } of functions) if (isParticiple(name)) addTo(names, name, 1);
}
const namesTotal = [...names.values()].reduce((sum, count) => sum + count, 0);
printCounts(`Functions named by one participle: ${namesTotal}`, names, ROWS);
