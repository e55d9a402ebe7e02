// The tables of docs/MODELS.md have a row for each dialect of the tests, in the same order.

import { expect, test } from "vitest";
import { CAPABILITIES } from "../kit/dialects/capabilities.ts";
import { DIALECTS } from "../kit/dialects/dialects.ts";
import { readDocument } from "./pages.ts";

/** Returns the cells of the table between two markers, without the line below the head. */
function rowsOf(mark: string): string[][] {
  const page = readDocument("docs/MODELS.md");
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

test("the table of capabilities has a row for each dialect, and a cell for each capability", () => {
  const [head, ...rows] = rowsOf("capabilities");
  expect(head).toEqual(["provider", ...CAPABILITIES.map(({ title }) => title)]);
  expect(rows.map(([name]) => name)).toEqual(DIALECTS.map(({ name }) => name));
  for (const row of rows) expect(row).toHaveLength(CAPABILITIES.length + 1);
});

test("a cell is empty only where the provider lacks the capability", () => {
  const [, ...rows] = rowsOf("capabilities");
  const missing = rows.map((row) => row.slice(1).map((cell) => cell === "-"));
  expect(missing).toEqual(DIALECTS.map((dialect) => CAPABILITIES.map((one) => !one.isFor(dialect))));
});
