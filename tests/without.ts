// Proves that features can be left out. It removes them from a copy of the project, checks its types, and runs
// the tests of the kernel. `npm run without -- cron` leaves out one feature and those that need it; `npm run
// without` leaves out all of them. `--quick` runs only the tests of the engine and of the store's contract.

import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { FEATURES } from "../src/features.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COPIED = [
  "src",
  "tests",
  "ui",
  "bench",
  "bin",
  ".ci",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
];
/** Tests that start no feature. */
const KERNEL_TESTS = ["core", "access", "engine", "flows", "store", "contract"].map(
  (name) => `tests/${name}`,
);
const QUICK_TESTS = ["tests/engine", "tests/contract"];

/** Returns the names of the features, and of those that need one of them, also by way of others. */
function withNeeding(names: readonly string[]): ReadonlySet<string> {
  const gone = new Set(names);
  for (const _ of FEATURES)
    for (const { name, needs = [] } of FEATURES) if (needs.some((need) => gone.has(need))) gone.add(name);
  return gone;
}

/** Removes the folders of a feature, and its lines in the two lists. */
function remove(folder: string, name: string): void {
  for (const path of ["src", "tests", "ui/src"])
    rmSync(join(folder, path, "features", name), { recursive: true, force: true });
  for (const list of ["src/features.ts", "ui/src/features.ts"]) {
    const file = join(folder, list);
    const text = readFileSync(file, "utf8");
    const found = new RegExp(`^import \\{ (\\w+) \\} from "\\./features/${name}/[^"]+";\\n`, "m").exec(text);
    if (found === null) continue;
    const [line, imported] = found;
    writeFileSync(file, text.replace(line, "").replace(new RegExp(`\\b${imported}\\b,?\\s?`), ""));
  }
}

function run(folder: string, command: string, args: readonly string[]): boolean {
  const program = join(ROOT, "node_modules/.bin", command);
  return spawnSync(program, args, { cwd: folder, stdio: "inherit" }).status === 0;
}

function hasTypes(folder: string): boolean {
  const kernel = {
    extends: "./tsconfig.json",
    include: ["src", "tests/*.d.ts", "tests/setup*.ts", ...KERNEL_TESTS],
  };
  writeFileSync(join(folder, "tsconfig.kernel.json"), JSON.stringify(kernel));
  const page = { extends: "./tsconfig.json", include: ["src", "../tests/ui/node-fetch.d.ts"] };
  writeFileSync(join(folder, "ui/tsconfig.kernel.json"), JSON.stringify(page));
  const configs = ["tsconfig.kernel.json", "ui/tsconfig.kernel.json"];
  return configs.every((config) => run(folder, "tsc", ["--noEmit", "-p", config]));
}

/** Returns whether the project works without these features. */
function worksWithout(names: readonly string[], tests: readonly string[]): boolean {
  const gone = withNeeding(names);
  console.log(`\nWithout ${[...gone].join(" and ")}`);
  const folder = mkdtempSync(join(tmpdir(), "parley-without-"));
  // Tests start programs of the copy as another user.
  chmodSync(folder, 0o755);
  try {
    const filter = (from: string): boolean => !/\/(node_modules|dist)$/.test(from);
    for (const path of COPIED) cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    for (const name of gone) remove(folder, name);
    return hasTypes(folder) && run(folder, "vitest", ["run", "--project", "tests", ...tests]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const every = FEATURES.map(({ name }) => name);
const isQuick = process.argv.includes("--quick");
const given = process.argv.slice(2).filter((arg) => arg !== "--quick");
const unknown = given.filter((name) => !every.includes(name));
if (unknown.length > 0) {
  console.error(`There is no feature ${unknown.join(", ")}. There are: ${every.join(", ")}.`);
  process.exit(2);
}
const works = worksWithout(given.length > 0 ? given : every, isQuick ? QUICK_TESTS : KERNEL_TESTS);
console.log(works ? "\nIt works without." : "\nIt does not work without.");
process.exitCode = works ? 0 : 1;
