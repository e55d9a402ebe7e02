// Reports which lines of our sources were executed, according to Node's own coverage (NODE_V8_COVERAGE), to
// find code that no fuzz input reached.

import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

interface Script {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[] }[];
}

export interface FileCoverage {
  /** Below `src`. */
  readonly file: string;
  readonly lines: number;
  readonly covered: number;
}

const SOURCES = new URL("../../src/", import.meta.url).href;

/** Returns how often each character was executed: an inner range overrides the ranges around it. */
function countsOf(source: string, script: Script): Uint8Array {
  const ran = new Uint8Array(source.length).fill(1);
  const ranges = script.functions.flatMap((one) => one.ranges);
  const outerFirst = ranges.toSorted((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of outerFirst)
    ran.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return ran;
}

function coverageOf(script: Script): FileCoverage {
  const source = readFileSync(fileURLToPath(script.url), "utf8");
  // Types and comments are not executed, so they are replaced by blanks.
  const code = stripTypeScriptTypes(source).replace(/\/\*[\s\S]*?\*\/|(?<![:"'`\\])\/\/.*$/gm, (comment) =>
    comment.replace(/[^\n]/g, " "),
  );
  const ran = countsOf(source, script);
  let at = 0;
  let [lines, covered] = [0, 0];
  for (const line of code.split("\n")) {
    const first = line.search(/[^\s{}()[\];,]/);
    if (first >= 0) {
      lines += 1;
      covered += ran[at + first] ?? 0;
    }
    at += line.length + 1;
  }
  return { file: script.url.slice(SOURCES.length), lines, covered };
}

/** Reads the coverage of each of our sources from the newest report in a folder. */
export function readCoverage(folder: string): FileCoverage[] {
  const reports = readdirSync(folder).map(
    (name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as { result: Script[] },
  );
  const scripts = new Map<string, Script>();
  for (const { result } of reports) {
    for (const script of result) if (script.url.startsWith(SOURCES)) scripts.set(script.url, script);
  }
  return [...scripts.values()].map(coverageOf).sort((a, b) => (a.file < b.file ? -1 : 1));
}
