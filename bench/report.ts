// Writes a measurement as a file, as markdown, and into docs/reference/FIGURES.md. The text between
// `<!-- figures A,B -->` and `<!-- /figures -->` in the document has the figures of the parts A and B; all
// other text stays unchanged, also the figures of parts that were not measured. A file without a valid
// measurement is an error that names the reason.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { machine, meets, percentile, type Row, shown } from "./measure.ts";

/** A row, and the part that measured it. */
export type PartRow = Row & { readonly part: string };

export interface Measurement {
  readonly machine: string;
  /** In ISO format and UTC. */
  readonly date: string;
  /** The commit, followed by `+` if there were uncommitted changes. Empty outside a repository. */
  readonly commit: string;
  readonly rows: readonly PartRow[];
}

function commitOf(folder: string): string {
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  try {
    return `${git("rev-parse", "--short=12", "HEAD")}${git("status", "--porcelain") === "" ? "" : "+"}`;
  } catch {
    return "";
  }
}

export function measurementOf(rows: readonly PartRow[], folder: string): Measurement {
  return { machine: machine(), date: new Date().toISOString(), commit: commitOf(folder), rows };
}

export function readMeasurement(file: string): Measurement {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`${file} can't be read as JSON: ${error instanceof Error ? error.message : error}`);
  }
  const {
    rows,
    machine = "unknown machine",
    date = "",
    commit = "",
  } = (parsed ?? {}) as Partial<Measurement>;
  const isRow = (row: Partial<PartRow> | null): boolean =>
    typeof row?.name === "string" && typeof row.size === "string" && Array.isArray(row.samples);
  if (!Array.isArray(rows) || !rows.every(isRow)) {
    throw new Error(`${file} is not a measurement. Use a file that \`npm run bench -- --json FILE\` wrote`);
  }
  return { machine, date, commit, rows: rows.map((row) => ({ ...row, part: row.part ?? "" })) };
}

/** Returns `older`, with its rows replaced for each part that `newer` has measured. */
export function withNewer(older: Measurement, newer: Measurement): Measurement {
  const parts = new Set(newer.rows.map(({ part }) => part));
  const places = [...new Set([...older.rows, ...newer.rows].map(({ part }) => part))];
  const rows = places.flatMap((part) =>
    (parts.has(part) ? newer : older).rows.filter((row) => row.part === part),
  );
  return { ...newer, rows };
}

export function headline({ machine, date, commit }: Measurement): string {
  const of = commit === "" ? "" : ` of ${commit}`;
  return `${machine}; ${date.slice(0, 10)}${of}; store: node:sqlite, WAL, each commit synced`;
}

const sizeName = (size: number): string =>
  size % 1_000_000 === 0 ? `${size / 1_000_000}M` : size % 1_000 === 0 ? `${size / 1_000}k` : String(size);

const aimOf = (target: string | undefined, isMissed: boolean): string =>
  target === undefined ? "" : ` (target ${target}${isMissed ? ": **missed**" : ""})`;

/** Formats the rows of one plot as a list: an item for each line, with the median for each size. */
function growthList(rows: readonly Row[], plot: string): string {
  const mine = rows.flatMap((row) => {
    const { growth } = row;
    return growth !== undefined && (growth.plot ?? growth.line) === plot ? [{ row, growth }] : [];
  });
  const sizes = [...new Set(mine.map(({ growth }) => growth.at))].sort((a, b) => a - b);
  const items = [...new Set(mine.map(({ growth }) => growth.line))].map((line) => {
    const points = mine.filter(({ growth }) => growth.line === line);
    const samplesAt = (size: number) => points.find(({ growth }) => growth.at === size)?.row.samples ?? [];
    const medians = sizes.map((size) => shown(percentile(samplesAt(size), 0.5))).join(", ");
    const isMissed = points.some(({ row }) => meets(row) === false);
    return `- ${line}: ${medians}${aimOf(points.at(-1)?.row.target, isMissed)}`;
  });
  const [first] = mine;
  const what = `${first?.row.unit ?? ""} with ${sizes.map(sizeName).join(", ")} ${first?.growth.of ?? ""}`;
  return [`${plot}, ${what}:`, "", ...items].join("\n");
}

/** Formats a row as an item of a list: its median, its p95 and its target. */
function itemOf(row: Row): string {
  const { name, size, unit, samples, target } = row;
  const high = samples.length === 1 ? "" : `, p95 ${shown(percentile(samples, 0.95))}`;
  const middle = `${shown(percentile(samples, 0.5))} ${unit}`;
  return `- ${name}, ${size}: ${middle}${high}${aimOf(target, meets(row) === false)}`;
}

/** Formats the rows as markdown: first a list of the rows without `growth`, then one for each plot. */
export function markdown(rows: readonly Row[]): string {
  const items = rows.filter(({ growth }) => growth === undefined).map(itemOf);
  const plots = rows.flatMap(({ growth }) => (growth === undefined ? [] : [growth.plot ?? growth.line]));
  return [
    ...(items.length === 0 ? [] : [items.join("\n")]),
    ...[...new Set(plots)].map((plot) => growthList(rows, plot)),
  ].join("\n\n");
}

const PLACE = /(<!-- figures ([\w, -]+?) -->\n)[\s\S]*?(<!-- \/figures -->)/g;
const MACHINE_PLACE = /(<!-- machine -->\n)[\s\S]*?(<!-- \/machine -->)/g;

export interface Filled {
  readonly text: string;
  /** Parts that were measured but have no place in the document. */
  readonly homeless: readonly string[];
}

/** Returns the document with the tables replaced by those of this measurement. */
export function filled(document: string, measured: Measurement): Filled {
  const placed = new Set<string>();
  const text = document
    .replaceAll(PLACE, (place, open: string, names: string, close: string) => {
      const parts = names.split(",").map((name) => name.trim());
      for (const part of parts) placed.add(part);
      const rows = parts.flatMap((part) => measured.rows.filter((row) => row.part === part));
      if (rows.length === 0) return place;
      return `${open}\n${markdown(rows)}\n\n${close}`;
    })
    .replaceAll(MACHINE_PLACE, (_, open: string, close: string) => `${open}${headline(measured)}\n${close}`);
  const homeless = [...new Set(measured.rows.map(({ part }) => part))].filter((part) => !placed.has(part));
  return { text, homeless };
}
