// SECURITY.md, docs/THREATS.md and CHANGELOG.md are true: each proof is a test that there is, each attacker and each
// door that the pages speak of has a line.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (name: string): string => readFileSync(ROOT + name, "utf8");

interface Proof {
  readonly file: string;
  readonly title: string;
}

/** The proofs of one line; what is none is a title without a file. */
const proofsOf = (cell: string): Proof[] =>
  cell.split("<br>").map((text) => {
    const [, file = "", title = text] = /^`(tests\/[\w./-]+\.test\.ts)`: (.+)$/.exec(text.trim()) ?? [];
    return { file, title };
  });

interface Line {
  readonly attacker: string;
  readonly doors: readonly string[];
  readonly proofs: readonly Proof[];
}

/** Each line of the table of threats, its last cell read as proofs. */
function linesOf(page: string): Line[] {
  const table = page.split("| attacker | door |")[1] ?? "";
  return table
    .split("\n")
    .slice(2)
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split(" | "))
    .map((cells) => ({
      attacker: cells[0]?.replace(/^\| /, "") ?? "",
      doors: cells[1]?.split(", ") ?? [],
      proofs: proofsOf(cells.length === 4 ? (cells[3] ?? "").replace(/ \|$/, "") : "no proof"),
    }));
}

/** `test.each(…)` and its like, and `test.skipIf(…)`, whose reason stands beside it; not `test.skip`. */
const TABLE = "\\.(?:each|skipIf|runIf)(?:<[^(]*>)?\\((?:[^()]|\\([^()]*\\))*\\)";

/** There is a test of this title in the file, and it is not left out. */
function stands({ file, title }: Proof): boolean {
  if (file === "" || !existsSync(ROOT + file)) return false;
  const escaped = title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^\\s*test(${TABLE})?\\(\\s*["'\`]${escaped}["'\`]`, "m").test(read(file));
}

test("each line of the threat table is proved by a test that there is", () => {
  const lines = linesOf(read("docs/THREATS.md"));
  expect(lines.length).toBeGreaterThan(70);
  expect(lines.flatMap(({ proofs }) => proofs).filter((proof) => !stands(proof))).toEqual([]);
});

test("planted: a proof that is gone, misspelt or missing is found", () => {
  const head = "| attacker | door | what stops it | proved by |\n|---|---|---|---|\n";
  const bad = [
    "| a | b | c | `tests/gateway/gone.test.ts`: a foreign host name gets no page |",
    "| a | b | c | `tests/gateway/page.test.ts`: a foreign host name gets a page |",
    "| a | b | c | we looked |",
    "| a | b | c |",
  ];
  const good = "| a | b | c | `tests/gateway/page.test.ts`: a foreign host name gets no page |";
  const judged = linesOf(head + [...bad, good].join("\n")).map(({ proofs }) => proofs.every(stands));
  expect(judged).toEqual([false, false, false, false, true]);
});

test("every attacker of the threat model has a line", () => {
  const known = linesOf(read("docs/THREATS.md")).map(({ attacker }) => attacker);
  const wanted = [
    ...["stolen scoped token", "CSRF", "DNS rebinding", "cross-site", "chat member", "peer agent"],
    ...["prompt injection", "model output", "MCP server", "attachment", "workspace"],
    ...["into logs", "into a terminal", "exhausts"],
  ];
  for (const words of wanted) expect(known.filter((attacker) => attacker.includes(words))).not.toEqual([]);
});

/** The doors of SECURITY.md: the first cell of each line of its table, which may name several. */
function doorsOf(page: string): string[] {
  const table = page.split("| door | trusts |")[1]?.split("\n\n")[0] ?? "";
  const lines = table.split("\n").filter((line) => line.startsWith("| "));
  return lines.flatMap((line) => line.split(" | ")[0]?.replace(/^\| /, "").split(", ") ?? []);
}

test("every door of SECURITY.md has a line, and the table stands in one place", () => {
  const security = read("SECURITY.md");
  const doors = doorsOf(security);
  expect(doors.length).toBeGreaterThan(12);
  const known = new Set(linesOf(read("docs/THREATS.md")).flatMap((line) => line.doors));
  expect(doors.filter((door) => !known.has(door))).toEqual([]);
  expect(linesOf(security)).toEqual([]);
  expect(security).toContain("](docs/THREATS.md)");
});

test("the changelog has a place for what comes, and speaks of the package's version", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  const changelog = read("CHANGELOG.md");
  expect(changelog).toMatch(/^## \[Unreleased\]$/m);
  expect(changelog).toContain(version);
  const kinds = [...changelog.matchAll(/^### (.+)$/gm)].map(([, kind]) => kind);
  const allowed = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
  expect(kinds.filter((kind) => !allowed.includes(kind ?? ""))).toEqual([]);
});
