// Implements `parley diff`: shows the steps of two chains side by side.

import { type Cli, EXIT } from "../../../cli/cli.ts";
import { type Reply, withLink } from "../../../cli/gateway-link.ts";
import { count, excerpt } from "../../../cli/layout.ts";
import type { ChainRecord } from "../../../core/shapes/record/chain.ts";
import { fromDifference } from "../../../core/text/difference.ts";
import { diffChains } from "../chain-diff.ts";
import type { ChainComparison, LabelDifference } from "../contract.ts";
import { fetchedRecord, recordInFile } from "./records.ts";

/** Characters of a step that are shown. */
const TEXT_CHARS = 48;

const usd = (value: number): string => (value === 0 ? "" : value.toFixed(4));
const seconds = (ms: number): string => (ms === 0 ? "" : (ms / 1_000).toFixed(1));
const tokens = (value: number): string => (value === 0 ? "" : String(value));

/** Shows two values as one if they are equal. */
const both = (a = "", b = ""): string => (a === b ? a : `${a || "-"} / ${b || "-"}`);

/** Prints where the labels of two chains differ. `names`: those of the chains. */
export function showLabels(
  cli: Cli,
  labels: readonly LabelDifference[],
  names: Readonly<Record<"a" | "b", string>>,
): void {
  if (labels.length === 0) return;
  cli.table(labels, {
    LABEL: ({ label }) => label,
    SOURCE: ({ source }) => source,
    SESSIONS: ({ sessions }) => sessions.join(", "),
    "ONLY IN": ({ side }) => names[side],
  });
  cli.line();
}

/** Prints the totals of two chains, and the number of their differences. */
export function showTotals(cli: Cli, found: Pick<ChainComparison, "a" | "b" | "differences">): void {
  const rows: readonly (readonly [string, (totals: ChainComparison["a"]) => string | number])[] = [
    ["Chain", ({ chainId }) => chainId],
    ["Runs", ({ runs }) => runs],
    ["Steps", ({ steps }) => steps],
    ["Tokens", (one) => one.tokens],
    ["Cost (USD)", ({ cost }) => cost.toFixed(4)],
    ["Seconds", ({ ms }) => (ms / 1_000).toFixed(1)],
  ];
  cli.table(rows, {
    TOTAL: ([name]) => name,
    A: ([, of]) => of(found.a),
    B: ([, of]) => of(found.b),
  });
  cli.line();
  cli.line(found.differences === 0 ? "No difference" : count(found.differences, "difference"));
}

function show(cli: Cli, a: ChainRecord, b: ChainRecord): number {
  const found = diffChains(a, b);
  cli.document({ ok: true, ...found });
  const texts = ({ a, b, same }: ChainComparison["steps"][number]): readonly [string, string] =>
    same ? [a?.text ?? "", "="] : fromDifference(a?.text ?? "", b?.text ?? "", TEXT_CHARS);
  const showSide = (text: string, side: unknown) =>
    side === undefined ? "(nothing)" : excerpt(text, TEXT_CHARS);
  cli.table(found.steps, {
    "": ({ same }) => (same ? "" : "*"),
    SESSION: ({ session }) => session,
    STEP: ({ step }) => step,
    A: (pair) => showSide(texts(pair)[0], pair.a),
    B: (pair) => showSide(texts(pair)[1], pair.b),
    TOKENS: ({ a, b }) => both(a && tokens(a.tokens), b && tokens(b.tokens)),
    COST: ({ a, b }) => both(a && usd(a.cost), b && usd(b.cost)),
    SECONDS: ({ a, b }) => both(a && seconds(a.ms), b && seconds(b.ms)),
  });
  cli.line();
  showLabels(cli, found.labels, { a: "A", b: "B" });
  showTotals(cli, found);
  return EXIT.done;
}

/** Compares two chains. Each is named by its id, or by the file of its record. */
export async function diffRecords(cli: Cli, { a, b }: Readonly<Record<"a" | "b", string>>): Promise<number> {
  const files = await Promise.all([a, b].map((name) => recordInFile(cli, name)));
  const showBoth = (left: Reply<ChainRecord>, right: Reply<ChainRecord>): number => {
    if (!left.ok) return cli.fail(left);
    return right.ok ? show(cli, left.value, right.value) : cli.fail(right);
  };
  const [left, right] = files;
  if (left !== undefined && right !== undefined) return showBoth(left, right);
  return withLink(cli, async (link) =>
    showBoth(left ?? (await fetchedRecord(cli, link, a)), right ?? (await fetchedRecord(cli, link, b))),
  );
}
