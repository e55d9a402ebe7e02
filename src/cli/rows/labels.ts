// Labels: what sessions have read from outside, and the decisions that followed.

import type { PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { labelRule, sourcesOf } from "../../core/rules/labels/labels.ts";
import { LABELS, type LabelDecision, type PathStep, SINKS, type SinkKind } from "../../core/shapes/labels.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Cli } from "../cli.ts";
import { amount, asks, type Commands, limit, option, withDefault } from "../row.ts";
import { findOrName } from "../session-name.ts";

/** Maximum number of decisions in a report. */
const REPORT_MAX = 1_000;

export const isSink = (word: string): word is SinkKind => (SINKS as readonly string[]).includes(word);

const stepWords = ({ runId, sessionKey }: PathStep): string => `${sessionKey} (run ${runId})`;

/** Prints the labels of a session, and the answer to a question about a call. */
export function labelLines(
  cli: Cli,
  { labels, readIn, mode, verdict, why = "" }: PayloadOf<"labels.explain">,
): void {
  for (const label of LABELS)
    for (const { source, since, runId } of labels[label] ?? []) {
      const place = readIn.find((one) => one.source === source && one.runId === runId);
      const when = since === 0 ? "" : `, ${cli.ago(since)}`;
      const read = place === undefined ? "" : `, in ${place.path.map(stepWords).join(" → ")}`;
      cli.line(safeLine(`${label}: ${source}${when}${read}`));
    }
  if (labels.outside === undefined) cli.line("It has read nothing from outside.");
  if (verdict === undefined) {
    cli.line(`labels.mode is ${mode}.`);
    return;
  }
  const isFree = verdict === "free" || verdict === "watch";
  const word = isFree ? cli.style("green", "yes") : cli.style("red", verdict === "ask" ? "asks" : "no ");
  cli.line(`${word}  ${safeLine(why)}`);
}

const decisionWord = (cli: Cli, { decision, by }: LabelDecision): string =>
  `${cli.style(decision === "allowed" ? "green" : "yellow", decision)} by ${safeLine(by)}`;

export const LABEL_COMMANDS: Commands = {
  list: asks({
    summary: "List decisions about texts that would have left, newest first",
    isDefault: true,
    options: {
      session: option("<key>", "Only of this session"),
      chain: option("<id>", "Only of this chain"),
      limit: limit(50),
    },
    ask: (link, { session: sessionKey, chain: chainId, limit: rows }) =>
      link.request("labels.list", { ...optional({ sessionKey, chainId }), limit: rows }),
    print: (cli, { decisions }) =>
      cli.table(
        decisions,
        {
          WHEN: ({ at }) => cli.ago(at),
          SESSION: ({ sessionKey }) => sessionKey,
          CALL: ({ sink, destination }) => `${sink} ${destination}`,
          AFTER: ({ labels }) => sourcesOf(labels.outside),
          DECISION: (one) => decisionWord(cli, one),
        },
        "Nothing was asked, refused or noted.",
      ),
  }),
  report: asks({
    summary: "Sum up the decisions of some days, by kind of call and sources",
    options: { days: withDefault(amount("<n>", "Number of days", 1), 7) },
    ask: (link, { days }) => link.request("labels.list", { days, limit: REPORT_MAX }),
    print(cli, { decisions }) {
      const groups = Map.groupBy(decisions, ({ sink, labels }) => labelRule(sink, labels));
      const count = (rows: readonly LabelDecision[], decision: LabelDecision["decision"]) =>
        String(rows.filter((row) => row.decision === decision).length);
      cli.table(
        [...groups].sort(([, a], [, b]) => b.length - a.length),
        {
          CALL: ([group]) => group,
          ALLOWED: ([, rows]) => count(rows, "allowed"),
          DENIED: ([, rows]) => count(rows, "denied"),
          REFUSED: ([, rows]) => count(rows, "refused"),
          "ONLY NOTED": ([, rows]) => count(rows, "watched"),
        },
        "Nothing was asked, refused or noted.",
      );
      if (decisions.length === REPORT_MAX) cli.say(`Only the newest ${REPORT_MAX} decisions are counted.`);
    },
  }),
  show: asks({
    summary: "Show what a session has read from outside, and what is private",
    args: { "<session>": "" },
    find: (link, input, cli) => findOrName(cli, link, input.session, {}),
    ask: (link, _, { key }) => link.request("labels.explain", { sessionKey: key }),
    print: labelLines,
  }),
  release: asks({
    summary: "Remove the labels of a session",
    args: { "<session>": "" },
    find: (link, input, cli) => findOrName(cli, link, input.session, {}),
    ask: (link, _, { key }) => link.request("labels.release", { sessionKey: key }),
    print: (cli, { sessionKey }) =>
      cli.line(`Released ${safeLine(sessionKey)}. Texts that it reads from now on are labelled again.`),
  }),
};
