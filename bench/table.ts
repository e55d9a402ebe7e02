// Replaces a table between two markers of a document, such as `<!-- conformance -->` and
// `<!-- /conformance -->`.

import { readFileSync, writeFileSync } from "node:fs";

export function writeTable(file: string, mark: string, table: readonly string[]): void {
  const page = readFileSync(file, "utf8");
  const [first, last] = [`<!-- ${mark} -->`, `<!-- /${mark} -->`];
  const [from, to] = [page.indexOf(first), page.indexOf(last)];
  if (from < 0 || to < from) throw new Error(`${file} lacks ${first} and ${last}`);
  writeFileSync(file, `${page.slice(0, from + first.length)}\n${table.join("\n")}\n${page.slice(to)}`);
}
