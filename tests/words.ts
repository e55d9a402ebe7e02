// Shows the prose of the sources. `npm run words -- --seed 7` draws a sample that a new reader rates, each
// text with its code line or describe block. `npm run words -- --check src/store` lists violations of the
// rules for words.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Prose, type ProseKind, proseOf, wordProblems } from "./kit/tidy/prose.ts";
import { orEnd, readNumber, typed } from "./kit/typed.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FOLDERS = ["src", "ui", "tests", "bench", "bin"];
const SAMPLE: Readonly<Record<ProseKind, number>> = { comment: 100, title: 50, message: 50 };
const USAGE = `npm run words -- [options]
  --seed N      draw ${SAMPLE.comment} comments, ${SAMPLE.title} test titles and ${SAMPLE.message} messages and labels (default 1)
  --check PATH  list the prose below PATH that breaks a rule of words, "." for everything`;

const values = typed(USAGE, { seed: { type: "string", default: "1" }, check: { type: "string" } });

function textsBelow(folder: string): Map<string, string> {
  const entries = readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true });
  const paths = entries
    .filter((entry) => entry.isFile() && /\.([jt]s|tsx)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length))
    .filter((path) => !path.includes("node_modules/") && !path.startsWith("ui/dist/"));
  return new Map(paths.sort().map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
}

/** Draws `count` of `all` at random. The same seed gives the same draw. */
function drawn(all: readonly Prose[], count: number, seed: number): Prose[] {
  let state = seed >>> 0;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state;
  };
  const pool = [...all];
  const sample: Prose[] = [];
  while (sample.length < count && pool.length > 0) sample.push(...pool.splice(next() % pool.length, 1));
  return sample;
}

const texts = new Map(FOLDERS.flatMap((folder) => [...textsBelow(folder)]));
if (values.check !== undefined) {
  const below = values.check === "." ? "" : values.check.replace(/^\.\//, "");
  const found = wordProblems(new Map([...texts].filter(([path]) => path.startsWith(below))));
  for (const problem of found) console.log(problem);
  console.log(`${found.length} found`);
  process.exitCode = found.length === 0 ? 0 : 1;
} else {
  const seed = orEnd(USAGE, () => readNumber("--seed", values.seed, 0));
  const all = [...texts].flatMap(([path, text]) => proseOf(path, text));
  for (const kind of ["comment", "title", "message"] as const) {
    const sample = drawn(
      all.filter((prose) => prose.kind === kind),
      SAMPLE[kind],
      seed,
    );
    for (const { path, line, text, context } of sample) {
      const shown = kind === "title" && context !== "" ? `${context} > ${text}` : text;
      const code = kind === "comment" && context !== "" ? `\n    | ${context}` : "";
      console.log(`${kind} ${path}:${line}\n    ${shown}${code}`);
    }
  }
}
