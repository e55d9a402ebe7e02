// Fuzzing by hand: npm run fuzz -- [--minutes 60] [--target NAME]... [--seed S [--path P]]
// The minutes are shared by the targets. Prints a line for each target; ends with 1 if one of them fails.
// With NODE_V8_COVERAGE set to an empty folder, it ends with a line for each source of ours that ran, and how much of it.

import { parseArgs } from "node:util";
import { takeCoverage } from "node:v8";
import { readCoverage } from "./coverage.ts";
import { type Budget, drive, type Report } from "./drive.ts";
import { TARGETS } from "./targets.ts";

const MINUTES_DEFAULT = 60;
/** Seeds stay small numbers: they are typed by people. */
const SEEDS = 1_000_000_000;

function fail(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(2);
}

function readArguments() {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string" },
      target: { type: "string", multiple: true },
      seed: { type: "string" },
      path: { type: "string" },
    },
  });
  const names = TARGETS.map(({ name }) => name);
  const unknown = values.target?.find((name) => !names.includes(name));
  if (unknown !== undefined) fail(`no target ${unknown}; there are: ${names.join(", ")}`);
  const minutes = Number(values.minutes ?? MINUTES_DEFAULT);
  const seed = Number(values.seed ?? Date.now() % SEEDS);
  if (!(minutes > 0) || !Number.isSafeInteger(seed))
    fail("--minutes takes a number above 0, --seed a whole one");
  const targets = TARGETS.filter(({ name }) => values.target?.includes(name) ?? true);
  return { minutes, seed, path: values.path, targets };
}

function line(report: Report, seconds: number): string {
  const end = report.failure === undefined ? "" : "  FAILED";
  const speed = Math.round(report.runs / Math.max(seconds, 0.001));
  const runs = `${report.runs} runs (${speed}/s), ${report.corpus} from the corpus`;
  return `${report.target.padEnd(18)} ${runs} in ${seconds.toFixed(1)} s${end}`;
}

const { minutes, seed, path, targets } = readArguments();
process.stdout.write(`fuzz: seed ${seed}, ${minutes} minutes, ${targets.length} targets\n`);
let failures = 0;
for (const target of targets) {
  const from = performance.now();
  const untilMs = from + (minutes * 60_000) / targets.length;
  const budget: Budget = {
    seed,
    enough: () => performance.now() >= untilMs,
    ...(path === undefined ? {} : { path }),
  };
  const report = await drive(target, budget);
  process.stdout.write(`${line(report, (performance.now() - from) / 1_000)}\n`);
  if (report.failure !== undefined) process.stdout.write(`${report.failure}\n\n`);
  failures += report.failure === undefined ? 0 : 1;
}
const { NODE_V8_COVERAGE: folder } = process.env;
if (folder !== undefined) {
  takeCoverage();
  for (const { file, covered, lines } of readCoverage(folder)) {
    process.stdout.write(`${file.padEnd(36)} ${covered} of ${lines} lines\n`);
  }
}
process.exit(failures === 0 ? 0 : 1);
