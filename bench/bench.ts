// Runs the benchmarks: `npm run bench`. options.ts lists the options, parts.ts the parts. The figures are
// only printed: no figure makes the benchmark fail.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WrongUsage } from "../tests/kit/typed.ts";
import { compare, comparison } from "./compare.ts";
import { meets, type Row, table } from "./measure.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import { PARTS } from "./parts.ts";
import { fileNameOf, type Plot, plotsOf, svgOf } from "./plot.ts";
import {
  filled,
  headline,
  type Measurement,
  markdown,
  measurementOf,
  type PartRow,
  readMeasurement,
  withNewer,
} from "./report.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DOCUMENT = join(ROOT, "docs", "reference", "FIGURES.md");
const DOCUMENT_PLOTS = join(ROOT, "docs", "plots");

function writeJson(file: string, measurement: Measurement): void {
  writeFileSync(file, JSON.stringify(measurement, null, 1));
}

async function measured(options: Options, names: readonly string[]): Promise<Measurement> {
  const rows: PartRow[] = [];
  for (const name of names) {
    const part = PARTS[name];
    if (part === undefined) continue;
    const from = performance.now();
    const found = await part({ sizes: options.sizes });
    rows.push(...found.map((row) => ({ part: name, ...row })));
    // Write the file after each part, so that a failure of a later part loses nothing.
    if (options.json !== undefined) writeJson(options.json, measurementOf(rows, ROOT));
    console.error(`${name}: ${found.length} rows in ${((performance.now() - from) / 1_000).toFixed(0)} s`);
  }
  return measurementOf(rows, ROOT);
}

/**
 * Returns the figures to show. They are measured now, or read from a file, or both: read from a file, with
 * some parts measured again.
 */
async function obtained(options: Options): Promise<Measurement> {
  const { only, from } = options;
  if (from === undefined) return measured(options, only ?? Object.keys(PARTS));
  const older = readMeasurement(from);
  return only === undefined ? older : withNewer(older, await measured(options, only));
}

function writePlots(folder: string, plots: readonly Plot[]): void {
  mkdirSync(folder, { recursive: true });
  for (const plot of plots) writeFileSync(join(folder, fileNameOf(plot)), svgOf(plot));
}

function writeDocument(measurement: Measurement): void {
  const { text, homeless } = filled(readFileSync(DOCUMENT, "utf8"), measurement);
  writeFileSync(DOCUMENT, text);
  const isShown = (plot: Plot): boolean => text.includes(`plots/${fileNameOf(plot)}`);
  writePlots(DOCUMENT_PLOTS, plotsOf(measurement.rows).filter(isShown));
  for (const part of homeless) console.error(`docs/reference/FIGURES.md has no section for the part ${part}`);
}

function verdict(rows: readonly Row[]): string {
  const judged = rows.map(meets).filter((met) => met !== undefined);
  return `targets met: ${judged.filter((met) => met).length} of ${judged.length}`;
}

async function compared(before: string, after: string | undefined, options: Options): Promise<void> {
  const old = readMeasurement(before);
  const had = Object.keys(PARTS).filter((name) => old.rows.some(({ part }) => part === name));
  const now = after === undefined ? await obtained({ only: had, ...options }) : readMeasurement(after);
  console.log(`before: ${headline(old)}\nafter:  ${headline(now)}\n`);
  console.log(comparison(compare(old.rows, now.rows)));
  if (options.json !== undefined) writeJson(options.json, now);
}

async function show(options: Options): Promise<void> {
  const measurement = await obtained(options);
  const { rows } = measurement;
  if (options.json !== undefined) writeJson(options.json, measurement);
  const shown = options.markdown ? markdown(rows) : table(rows);
  console.log(`${headline(measurement)}\n\n${shown}\n\n${verdict(rows)}`);
  if (options.plots !== undefined) writePlots(options.plots, plotsOf(rows));
  if (options.docs) writeDocument(measurement);
}

try {
  const options = readOptions(process.argv.slice(2), Object.keys(PARTS));
  if (options === undefined) console.log(`${USAGE}\n\nparts: ${Object.keys(PARTS).join(", ")}`);
  else if (options.compare !== undefined) {
    await compared(options.compare.before, options.compare.after, options);
  } else await show(options);
} catch (error) {
  if (!(error instanceof WrongUsage)) throw error;
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}
