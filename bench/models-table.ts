// Tries each capability with the servers of each dialect, and writes into docs/reference/PROVIDERS.md the
// settings of each provider, and what does not work at once with it. Exit code 1: something does not work.
//
//   npm run models                    all providers
//   npm run models -- --only mistral  prints the errors of one provider, and keeps the list

import { fileURLToPath } from "node:url";
import { CAPABILITIES, type Capability } from "../tests/kit/dialects/capabilities.ts";
import type { Dialect } from "../tests/kit/dialects/dialect.ts";
import { DIALECTS } from "../tests/kit/dialects/dialects.ts";
import { type Ground, openDialects } from "../tests/kit/dialects/ground.ts";
import { cleanUp } from "../tests/kit/engine/engine.ts";
import { typed } from "../tests/kit/typed.ts";
import { writeTable } from "./table.ts";

const PAGE = fileURLToPath(new URL("../docs/reference/PROVIDERS.md", import.meta.url));

/** `learned`: works after a refusal from which the gateway learned. `-`: the server does not have it. */
type Cell = "yes" | "learned" | "no" | "-";

/** The words before the capabilities that are exceptions. */
const WORDS = { learned: "learned", "-": "without", no: "fails with" };

const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
const head = (cells: readonly string[]): string[] => [line(cells), `|${"---|".repeat(cells.length)}`];

async function tryOne(ground: Ground, dialect: Dialect, capability: Capability): Promise<Cell> {
  if (!capability.isFor(dialect)) return "-";
  try {
    return (await capability.try(ground, dialect)) === 0 ? "yes" : "learned";
  } catch (error) {
    console.error(`${dialect.name}, ${capability.id}: ${(error as Error).message}`);
    return "no";
  }
}

const { only } = typed("npm run models -- [--only PROVIDER]", { only: { type: "string", multiple: true } });
const dialects = DIALECTS.filter(({ id }) => only?.includes(id) ?? true);
const models = CAPABILITIES.map(({ id }) => id);
const ground = await openDialects(dialects, models);
const rows = new Map<Dialect, Cell[]>();
for (const dialect of dialects) {
  rows.set(dialect, await Promise.all(CAPABILITIES.map((one) => tryOne(ground, dialect, one))));
}
await cleanUp();
const settings = [
  ...head(["provider", "id", "`api`", "`baseUrl`", "quirks"]),
  ...DIALECTS.map(({ name, id, api, baseUrl, quirks }) =>
    line([name, `\`${id}\``, `\`${api}\``, `\`${baseUrl}\``, quirks]),
  ),
];
const list = [...rows].flatMap(([{ name }, cells]) => {
  const exceptions = Object.entries(WORDS).flatMap(([cell, word]) => {
    const titles = CAPABILITIES.filter((_, at) => cells[at] === cell).map(({ title }) => title);
    if (titles.length === 0) return [];
    const isWhole = cell !== "-" && cells.every((one) => one === cell || one === "-");
    return `${word} ${isWhole ? "everything" : titles.join(", ")}`;
  });
  return exceptions.length === 0 ? [] : `- ${name}: ${exceptions.join("; ")}`;
});
console.log(list.join("\n"));
writeTable(PAGE, "providers", settings);
if (only === undefined) writeTable(PAGE, "capabilities", list);
process.exit([...rows.values()].flat().includes("no") ? 1 : 0);
