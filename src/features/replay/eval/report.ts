// Writes the outcomes of an evaluation as JUnit XML and as an HTML page.

import type { Outcome } from "./outcome.ts";

/** Characters that XML 1.0 does not allow, even escaped. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove.
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

const escapeXml = (text: string): string =>
  text.replace(FORBIDDEN, "").replace(/[<>&"']/g, (char) => `&#${char.codePointAt(0)};`);

/** Returns why an outcome failed, one reason in each line. */
export function reasonsOf({ checks, error }: Outcome): string[] {
  if (error !== undefined) return [error];
  return checks
    .filter(({ passed }) => !passed)
    .map(({ expectation: { kind, value }, why }) => `${kind} ${JSON.stringify(value)}: ${why}`);
}

export function junitOf(outcomes: readonly Outcome[]): string {
  const suites = [...Map.groupBy(outcomes, ({ variant }) => variant)].map(([variant, own]) => {
    const cases = own.map((one) => {
      const failure = one.passed ? "" : `<failure>${escapeXml(reasonsOf(one).join("\n"))}</failure>`;
      const names = `classname="${escapeXml(variant)}" name="${escapeXml(one.name)}"`;
      return `    <testcase ${names}>${failure}</testcase>`;
    });
    const failures = own.filter(({ passed }) => !passed).length;
    const counts = `tests="${own.length}" failures="${failures}"`;
    return [`  <testsuite name="${escapeXml(variant)}" ${counts}>`, ...cases, "  </testsuite>"].join("\n");
  });
  return ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", ...suites, "</testsuites>", ""].join(
    "\n",
  );
}

const STYLE =
  "body{font-family:sans-serif;margin:2rem}td,th{border:1px solid #888;padding:.4rem;text-align:left}" +
  "table{border-collapse:collapse}.failed{background:#fdd;color:#000}pre{white-space:pre-wrap;margin:0}";

export function htmlOf(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map((one) => {
    const { name, variant, passed, cost, steps, differences, checks } = one;
    const state = passed ? "passed" : "failed";
    const why = checks.map(({ expectation: { kind, value }, passed: ok, why: text }) =>
      escapeXml(`${ok ? "passed" : "failed"}: ${kind} ${JSON.stringify(value)}: ${text}`),
    );
    const error = one.error === undefined ? [] : [escapeXml(one.error)];
    const details = `<pre>${[...why, ...error].join("\n")}</pre>`;
    const cells = [escapeXml(name), escapeXml(variant), state, cost.toFixed(4), steps, differences, details];
    return `<tr class="${state}">${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
  });
  const names = ["Case", "Variant", "Result", "Cost (USD)", "Answers", "Differences", "Expectations"];
  const head = `<tr>${names.map((name) => `<th>${name}</th>`).join("")}</tr>`;
  const meta = `<meta charset="utf-8"><title>Evaluation</title><style>${STYLE}</style>`;
  const table = `<h1>Evaluation</h1>\n<table>\n${[head, ...rows].join("\n")}\n</table>`;
  return `<!doctype html>\n<html lang="en"><head>${meta}</head>\n<body>${table}</body></html>\n`;
}
