// Reads the command line of `npm run bench`, and explains errors in it.

import { optional } from "../src/core/optional.ts";
import { readTyped, WrongUsage } from "../tests/kit/typed.ts";

export const USAGE = `npm run bench -- [--only PART[,PART]] [--sizes N[,N]]
  --json FILE      also writes every sample, with commit, date and machine
  --markdown       prints the tables as markdown
  --plots DIR      writes the plots to DIR, as SVG
  --docs           updates the tables of docs/reference/FIGURES.md, and the plots that it shows in docs/plots
  --from FILE      takes the rows from FILE; with --only, measures these parts again
  --compare OLD.json [NEW.json]   compares two files; without NEW.json, measures the parts of OLD.json`;

/** Default sizes of the store, for parts whose figures depend on the size. */
const SIZES = [1_000, 10_000, 100_000, 1_000_000];
const SIZE_MAX = 10_000_000;

export interface Options {
  /** Names of the parts to measure. Absent: all. */
  readonly only?: readonly string[];
  readonly sizes: readonly number[];
  readonly json?: string;
  readonly from?: string;
  readonly compare?: { readonly before: string; readonly after?: string };
  readonly plots?: string;
  readonly markdown: boolean;
  readonly docs: boolean;
}

function sizesOf(text: string): number[] {
  const sizes = text.split(",").map((piece) => Number(piece.trim().replaceAll("_", "")));
  if (sizes.length === 0 || sizes.some((size) => !Number.isInteger(size) || size < 100 || size > SIZE_MAX)) {
    throw new WrongUsage(
      `--sizes takes whole numbers from 100 to ${SIZE_MAX}, such as 1000,10000; got ${JSON.stringify(text)}`,
    );
  }
  return [...new Set(sizes)].sort((a, b) => a - b);
}

function partsOf(text: string, known: readonly string[]): string[] {
  const wanted = text.split(",").map((piece) => piece.trim());
  const strange = wanted.filter((name) => !known.includes(name));
  if (strange.length > 0) {
    throw new WrongUsage(`--only: unknown part ${JSON.stringify(strange[0])}; valid: ${known.join(", ")}`);
  }
  return [...new Set(wanted)];
}

function parsed(args: readonly string[]) {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const options = {
    only: text,
    sizes: text,
    json: text,
    from: text,
    compare: text,
    plots: text,
    markdown: flag,
    docs: flag,
  };
  return readTyped(args, options, true);
}

/** Returns the options, or undefined after `--help`. Throws `WrongUsage` if the command line is invalid. */
export function readOptions(args: readonly string[], known: readonly string[]): Options | undefined {
  const { values, positionals } = parsed(args);
  if (values.help) return undefined;
  const [after, ...rest] = positionals;
  if (rest.length > 0 || (after !== undefined && values.compare === undefined)) {
    throw new WrongUsage(
      `${JSON.stringify(rest[0] ?? after)} belongs to no option; only --compare takes a second file`,
    );
  }
  if (after !== undefined && (values.only !== undefined || values.from !== undefined)) {
    throw new WrongUsage("--compare of two files measures nothing: leave --only and --from out");
  }
  const { json, from, plots, markdown, docs } = values;
  return {
    sizes: values.sizes === undefined ? SIZES : sizesOf(values.sizes),
    markdown,
    docs,
    ...(values.only === undefined ? {} : { only: partsOf(values.only, known) }),
    ...optional({ json, from, plots }),
    ...(values.compare === undefined ? {} : { compare: { before: values.compare, ...optional({ after }) } }),
  };
}
