// The table of docs/reference/PROVIDERS.md has a row for each dialect of the tests, in the same order, and its list names
// what a provider lacks.

import { expect, test } from "vitest";
import { CAPABILITIES } from "../kit/dialects/capabilities.ts";
import { DIALECTS } from "../kit/dialects/dialects.ts";
import { readDocument } from "./pages.ts";

/** Returns the cells of the table between two markers, without the line below the head. */
function rowsOf(mark: string): string[][] {
  const page = readDocument("docs/reference/PROVIDERS.md");
  const table = page.split(`<!-- ${mark} -->`)[1]?.split(`<!-- /${mark} -->`)[0] ?? "";
  const lines = table.split("\n").filter((line) => line.startsWith("|") && !line.startsWith("|---"));
  return lines.map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

test("the table of providers shows the settings of each dialect", () => {
  const [, ...rows] = rowsOf("providers");
  expect(rows).toEqual(
    DIALECTS.map(({ name, id, api, baseUrl, quirks }) => [
      ...[name, `\`${id}\``, `\`${api}\``, `\`${baseUrl}\``, quirks],
    ]),
  );
});

test("the list of exceptions has what each provider lacks, and no unknown provider", () => {
  const part =
    readDocument("docs/reference/PROVIDERS.md").split("<!-- capabilities -->")[1]?.split("<!--")[0] ?? "";
  const exceptions = new Map(
    [...part.matchAll(/^- ([^:]+): (.+)$/gm)].map(([, name = "", text = ""]) => [name, text.split("; ")]),
  );
  expect([...exceptions.keys()].filter((name) => !DIALECTS.some((one) => one.name === name))).toEqual([]);
  for (const dialect of DIALECTS) {
    const missing = CAPABILITIES.filter((one) => !one.isFor(dialect)).map(({ title }) => title);
    const found = exceptions.get(dialect.name)?.filter((text) => text.startsWith("without ")) ?? [];
    expect(found).toEqual(missing.length === 0 ? [] : [`without ${missing.join(", ")}`]);
  }
});
