// Checks SECURITY.md, docs/internals/THREATS.md and CHANGELOG.md: the tests that they name exist, and each attacker and
// each entry point has a defence.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (name: string): string => readFileSync(ROOT + name, "utf8");

interface Proof {
  readonly file: string;
  readonly title: string;
}

interface Line {
  readonly attacker: string;
  readonly doors: readonly string[];
  readonly proofs: Proof[];
}

const HEADING = /^## (.+)$/;
const DEFENCE = /^- \*\*([^*]+)\*\*(?: \(([^)]*)\))?: /;
const PROOF = /^ {2}- (?:`(tests\/[\w./-]+\.test\.ts)`: )?(.+)$/;

/**
 * Parses the defences in docs/internals/THREATS.md, each with its attacker and the tests that prove it. If a proof
 * names no file, it has only a title.
 */
function linesOf(page: string): Line[] {
  const lines: Line[] = [];
  let attacker = "";
  for (const text of page.split("\n")) {
    attacker = HEADING.exec(text)?.[1] ?? attacker;
    const [, doors, note = ""] = DEFENCE.exec(text) ?? [];
    if (doors !== undefined)
      lines.push({ attacker: `${attacker} ${note}`.toLowerCase(), doors: doors.split(", "), proofs: [] });
    const [, file = "", title] = PROOF.exec(text) ?? [];
    if (title !== undefined) lines.at(-1)?.proofs.push({ file, title: title.replace(/ …$/, "") });
  }
  return lines;
}

/**
 * Matches `test.each(…)`, its variants, and `test.skipIf(…)`, which states a condition. Does not match
 * `test.skip`.
 */
const TABLE = "\\.(?:each|skipIf|runIf)(?:<[^(]*>)?\\((?:[^()]|\\([^()]*\\))*\\)";

/** Returns true if the file contains a test whose title begins so, and the test is not skipped. */
function exists({ file, title }: Proof): boolean {
  if (file === "" || !existsSync(ROOT + file)) return false;
  const escaped = title.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const begun = `(?:test|both)(?:\\.deep)?(${TABLE})?\\(`;
  return new RegExp(`^\\s*${begun}\\s*["'\`]${escaped}(?![\\w-])`, "m").test(read(file));
}

test("each defence in docs/internals/THREATS.md is proved by an existing test", () => {
  const lines = linesOf(read("docs/internals/THREATS.md"));
  const proofs = lines.flatMap((line) => line.proofs);
  expect(lines.length).toBeGreaterThan(70);
  expect(proofs.length).toBeGreaterThan(90);
  expect(lines.filter((line) => line.proofs.length === 0)).toEqual([]);
  expect(proofs.filter((proof) => !exists(proof))).toEqual([]);
});

test("a defence whose proof is removed, misspelt or missing is found", () => {
  const pages = [
    "- **a**: b\n  - `tests/gateway/gone.test.ts`: an unknown host name gets no page",
    "- **a**: b\n  - `tests/gateway/http/page.test.ts`: an unknown host name gets a page",
    "- **a**: b\n  - we looked",
    "- **a**: b",
    "- **a** (c): b\n  - `tests/gateway/http/page.test.ts`: an unknown host name gets no page",
  ];
  const isProved = ({ proofs }: Line): boolean => proofs.length > 0 && proofs.every(exists);
  expect(linesOf(pages.join("\n")).map(isProved)).toEqual([false, false, false, false, true]);
});

test("every attacker in the threat model has a section", () => {
  const known = linesOf(read("docs/internals/THREATS.md")).map(({ attacker }) => attacker);
  const wanted = [
    ...["stolen scoped token", "CSRF", "DNS rebinding", "cross-site", "chat member", "peer agent"],
    ...["prompt injection", "model output", "MCP server", "attachment", "workspace"],
    ...["into logs", "into a terminal", "exhausts"],
  ];
  for (const words of wanted)
    expect(known.filter((attacker) => attacker.includes(words.toLowerCase()))).not.toEqual([]);
});

/**
 * Returns the entry points in SECURITY.md: the first cell of each row of its table. A cell may name several.
 */
function doorsOf(page: string): string[] {
  const table = page.split("| door | trusts |")[1]?.split("\n\n")[0] ?? "";
  const lines = table.split("\n").filter((line) => line.startsWith("| "));
  return lines.flatMap((line) => line.split(" | ")[0]?.replace(/^\| /, "").split(", ") ?? []);
}

test("docs/internals/THREATS.md lists a defence for every entry point in SECURITY.md, and SECURITY.md itself lists no defence", () => {
  const security = read("SECURITY.md");
  const doors = doorsOf(security);
  expect(doors.length).toBeGreaterThan(12);
  const known = new Set(linesOf(read("docs/internals/THREATS.md")).flatMap((line) => line.doors));
  expect(doors.filter((door) => !known.has(door))).toEqual([]);
  expect(linesOf(security)).toEqual([]);
  expect(security).toContain("](docs/internals/THREATS.md)");
});

test("the changelog has a section for unreleased changes, and names the package's version", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  const changelog = read("CHANGELOG.md");
  expect(changelog).toMatch(/^## \[Unreleased\]$/m);
  expect(changelog).toContain(version);
  const kinds = [...changelog.matchAll(/^### (.+)$/gm)].map(([, kind]) => kind);
  const allowed = ["What to do", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"];
  expect(kinds.filter((kind) => !allowed.includes(kind ?? ""))).toEqual([]);
});
