// Runs fuzz targets by hand. Prints a line for each target and exits with 1 if one fails.

import { optional } from "../../src/core/optional.ts";
import { orEnd, readNumber, typed, WrongUsage } from "../kit/typed.ts";
import { type Budget, drive, type Report } from "./drive.ts";
import { TARGETS } from "./targets.ts";

/** Maximum seed. It is small because people type seeds. */
const SEEDS = 1_000_000_000;

const USAGE = `npm run fuzz -- [options]
  --minutes N    shared by the targets (default 60)
  --target NAME  this one; may be given several times
  --seed S       begin with this one
  --path P       of the seed: the case that failed`;

const values = typed(USAGE, {
  minutes: { type: "string", default: "60" },
  target: { type: "string", multiple: true },
  seed: { type: "string", default: String(Date.now() % SEEDS) },
  path: { type: "string" },
});

function wanted() {
  const names = TARGETS.map(({ name }) => name);
  const unknown = values.target?.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new WrongUsage(`no target ${unknown}; there are: ${names.join(", ")}`);
  const targets = TARGETS.filter(({ name }) => values.target?.includes(name) ?? true);
  const seed = readNumber("--seed", values.seed, 0);
  return { targets, seed, minutes: readNumber("--minutes", values.minutes, 0.001) };
}

function line(report: Report, seconds: number): string {
  const end = report.failure === undefined ? "" : "  FAILED";
  const speed = Math.round(report.runs / Math.max(seconds, 0.001));
  const runs = `${report.runs} runs (${speed}/s), ${report.corpus} from the corpus`;
  return `${report.target.padEnd(18)} ${runs} in ${seconds.toFixed(1)} s${end}`;
}

const { minutes, seed, targets } = orEnd(USAGE, wanted);
const { path } = values;
process.stdout.write(`fuzz: seed ${seed}, ${minutes} minutes, ${targets.length} targets\n`);
let failures = 0;
for (const target of targets) {
  const from = performance.now();
  const untilMs = from + (minutes * 60_000) / targets.length;
  const budget: Budget = {
    seed,
    enough: () => performance.now() >= untilMs,
    ...optional({ path }),
  };
  const report = await drive(target, budget);
  process.stdout.write(`${line(report, (performance.now() - from) / 1_000)}\n`);
  if (report.failure !== undefined) process.stdout.write(`${report.failure}\n\n`);
  failures += report.failure === undefined ? 0 : 1;
}
process.exit(failures === 0 ? 0 : 1);
