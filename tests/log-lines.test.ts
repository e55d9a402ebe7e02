// The format of log lines, for people and for programs, and the fields that they may contain.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { logLine } from "../src/cli/log-lines.ts";
import { harmlessJson } from "../src/core/text/safe-text.ts";
import { type Log, logging, withFields } from "../src/world.ts";
import { fakeWorld } from "./kit/world.ts";

const ROOT = join(import.meta.dirname, "..");
const json = (fields: object): string => `${JSON.stringify({ level: 40, time: 0, ...fields })}\n`;

test("a log line for people has time, level, part, message and fields, in colours if the terminal supports them", () => {
  const line = json({ part: "engine", runId: "r-1", ms: 12, why: "it is late", msg: "a run failed" });
  expect(logLine(line, false)).toMatch(
    /^\d\d:\d\d:\d\d\.000 WARN {2}engine {4}a run failed runId=r-1 ms=12 why="it is late"\n$/,
  );
  expect(logLine(line, true)).toContain("\u001b[33mWARN \u001b[39m");
});

test("details of an error are indented below its line, so that no line of a stack trace looks like a log line", () => {
  const err = { type: "Error", message: "no", stack: "Error: no\n12:00:00.000 INFO  all is well", code: "X" };
  const [first, ...below] = logLine(json({ msg: "oh", err }), false)
    .trimEnd()
    .split("\n");
  expect(first).toMatch(/oh$/);
  expect(below.every((one) => one.startsWith("    "))).toBe(true);
  expect(below.join("\n")).toContain('"code": "X"');
});

test("LL1: no text in a line can move the cursor, change colours or begin another line", () => {
  const evil = "\u001b[2J\u009b31m\r\n12:00:00.000 INFO\u202e";
  const shown = logLine(json({ part: evil, msg: evil, [evil]: evil, list: [evil] }), false);
  expect(shown.trimEnd()).not.toMatch(/[\p{Cc}\u202e]/u);
  const line = harmlessJson(JSON.stringify({ msg: evil }));
  expect(line).not.toMatch(/[\p{Cc}\u202e]/u);
  expect(JSON.parse(line)).toEqual({ msg: evil });
});

test.each(["no json at all \u001b[31m\n", '{"half": \n', "[1]\n", "null\n"])(
  "LL2: a log line shows a field with %j",
  (line) => {
    const shown = logLine(line, false);
    expect(shown.endsWith("\n")).toBe(true);
    expect(shown.trim().length).toBeGreaterThan(2);
    expect(shown.trimEnd()).not.toMatch(/\p{Cc}/u);
  },
);

test("fields of a line replace fields of its logger, and fields of a child logger replace those of its parent", () => {
  const world = fakeWorld();
  const inner = withFields(logging(world, { part: "app", a: 1 }).log, { part: "engine", b: 1 });
  inner.info({ b: 2 }, "x");
  expect(world.logged).toEqual([{ level: "info", fields: { part: "engine", a: 1, b: 2 }, text: "x" }]);
});

/** Yields the first argument of each log call in a source text. */
function* fieldsIn(text: string): Generator<string> {
  for (const { index, 0: call } of text.matchAll(/\blog\b\)?(?:\.(?:debug|info|warn|error)|\[[^\]]*\])\(/g)) {
    const from = index + call.length;
    let depth = 0;
    let at = from;
    for (; at < text.length; at += 1) {
      const char = text[at] ?? "";
      if (depth === 0 && (char === "," || char === ")")) break;
      if ("([{".includes(char)) depth += 1;
      if (")]}".includes(char)) depth -= 1;
    }
    yield text.slice(from, at);
  }
}

test("every log call in the source uses field names that docs/MONITORING.md lists", () => {
  const rows = readFileSync(join(ROOT, "docs/MONITORING.md"), "utf8").split("\n## Fields\n")[1] ?? "";
  const known = new Set(
    [...(rows.split("\n## ")[0] ?? "").matchAll(/^- (`.*?):/gm)].flatMap(
      ([, names = ""]) => names.match(/\w+/g) ?? [],
    ),
  );
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  let seen = 0;
  for (const file of files.filter((name) => name.endsWith(".ts"))) {
    for (const fields of fieldsIn(readFileSync(join(ROOT, "src", file), "utf8"))) {
      seen += 1;
      for (const [, name = ""] of fields
        .replaceAll(/\$\{[^}]*\}/g, "")
        .matchAll(/[{,]\s*(\w+)(?=\s*[:,}])/g)) {
        expect.soft(known, `${file}: ${fields}`).toContain(name);
      }
    }
  }
  expect(seen).toBeGreaterThan(80);
});

test("a disabled level costs no time, and each part can have its own level", async () => {
  const { realWorld } = await import("../src/world.ts");
  const told: string[] = [];
  const format = (): string => "";
  const tame = (line: string): string => {
    told.push(JSON.parse(line).msg);
    return line;
  };
  const { log }: { log: Log } = realWorld({
    level: "warn",
    parts: { store: "debug", agent: "silent" },
    tame,
    format,
    sync: true,
  });
  for (const part of ["store", "agent", "engine"]) {
    const its = withFields(log, { part });
    its.debug({}, `${part} debug`);
    its.error({}, `${part} error`);
  }
  log.info({}, "info");
  log.warn({}, "warn");
  expect(told).toEqual(["store debug", "store error", "engine error", "warn"]);
});

test("a changed level applies to the next line, also in parts that have their log already", async () => {
  const { realWorld } = await import("../src/world.ts");
  const told: string[] = [];
  const tame = (line: string): string => {
    told.push(JSON.parse(line).msg);
    return line;
  };
  let levels: { level: string; parts?: Record<string, string> } = { level: "info" };
  const { log } = realWorld({ levels: () => levels, tame, format: () => "", sync: true });
  const store = withFields(log, { part: "store" });
  const say = (when: string): void => {
    log.info({}, `${when}, info`);
    store.debug({}, `${when}, debug of a part`);
  };
  say("first");
  levels = { level: "error", parts: { store: "debug" } };
  say("then");
  levels = { level: "silent" };
  log.error({}, "silent");
  levels = { level: "debug" };
  say("last");
  expect(told).toEqual(["first, info", "then, debug of a part", "last, info", "last, debug of a part"]);
});
