// Writes usage as a file: CSV for spreadsheets, or JSON.
// UX1: if a spreadsheet would run a text as a formula, an apostrophe is put before the text.

import type { UsageReport } from "../../../../src/contract/methods/operations.ts";
import type { UsageLine } from "../../../../src/core/shapes/usage.ts";

const COLUMNS: readonly (readonly [string, (line: UsageLine) => string | number | undefined])[] = [
  ["name", ({ name }) => name],
  ["label", ({ label }) => label],
  ["session", ({ sessionKey }) => sessionKey],
  ["opening", ({ opening }) => opening],
  ["runs", ({ runs }) => runs],
  ["input_tokens", ({ input }) => input],
  ["cache_read_tokens", ({ cacheRead }) => cacheRead],
  ["cache_write_tokens", ({ cacheWrite }) => cacheWrite],
  ["output_tokens", ({ output }) => output],
  ["total_tokens", ({ totalTokens }) => totalTokens],
  ["cost_usd", ({ cost }) => cost],
  ["last_at", ({ lastAt }) => new Date(lastAt).toISOString()],
];

function cell(value: string | number | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = /^[\s]*[=+\-@]|^[\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvOf({ by, lines }: Pick<UsageReport, "by" | "lines">): string {
  const used = COLUMNS.filter(
    ([name, of]) => name === "name" || lines.some((line) => of(line) !== undefined),
  );
  const heads = used.map(([name]) => (name === "name" ? by : name));
  const rows = [heads, ...lines.map((line) => used.map(([, of]) => cell(of(line))))];
  return rows.map((row) => `${row.join(",")}\r\n`).join("");
}
