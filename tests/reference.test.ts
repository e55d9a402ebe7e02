// The pages of docs/reference match the schemas, and each part of a schema has a description.

import { expect, test } from "vitest";
import { configKeys, unitOf } from "../src/config/schema/keys.ts";
import { METHODS } from "../src/contract/methods.ts";
import { TOOLS } from "../src/contract/tools.ts";
import { CODES } from "../src/core/shapes/errors.ts";
import { toolSpecs } from "../src/tools/catalog.ts";
import { commandLinePage, commands } from "./kit/reference/command-line.ts";
import { configurationPage } from "./kit/reference/configuration.ts";
import { errorsPage, meanings } from "./kit/reference/errors.ts";
import { FIELD_WORDS } from "./kit/reference/field-words.ts";
import { labelTasksPage } from "./kit/reference/label-tasks.ts";
import { LINE_MAX_CHARS } from "./kit/reference/markdown.ts";
import { givenFields, protocolPage, Wire } from "./kit/reference/protocol.ts";
import { toolArguments, toolsPage } from "./kit/reference/tools.ts";

const PAGES = {
  TOOLS: toolsPage,
  PROTOCOL: protocolPage,
  CONFIGURATION: configurationPage,
  "COMMAND-LINE": commandLinePage,
  ERRORS: errorsPage,
  "LABEL-TASKS": labelTasksPage,
};

test.each(Object.entries(PAGES))(
  "docs/reference/%s.md is generated from the schemas (--update rewrites it)",
  async (name, make) => {
    const text = make();
    const long = text.split("\n").filter((line) => line.length > LINE_MAX_CHARS);
    expect(long).toEqual([]);
    await expect(text).toMatchFileSnapshot(`../docs/reference/${name}.md`);
  },
);

test("every argument of a tool, every param of a method and every field of a body has a description", () => {
  const silent = [...toolArguments(), ...givenFields()].filter(({ field }) => !field.schema.description);
  expect(silent.map((one) => `${"tool" in one ? one.tool : one.method} ${one.field.path}`)).toEqual([]);
});

test("the tool catalogue offers exactly the tools of the contract, but two that only clients of MCP have", () => {
  const offered = [...toolSpecs().map(({ name }) => name), "sessions_fork", "sessions_inbox"];
  expect(offered.sort()).toEqual(Object.keys(TOOLS).sort());
});

test("every method has a description and an answer", () => {
  const wire = new Wire();
  for (const [method, { summary }] of Object.entries(METHODS)) {
    expect({ method, summary: summary.endsWith("."), answer: wire.payloads.has(method) }).toEqual({
      method,
      summary: true,
      answer: true,
    });
  }
});

test("every field of the protocol has a description, at its declaration or by its name", () => {
  const wire = new Wire();
  expect(wire.unspoken()).toEqual([]);
  const used = wire.namesUsed();
  expect(Object.keys(FIELD_WORDS).filter((name) => !used.has(name))).toEqual([]);
});

test("every key of the configuration has a description, and every number has a unit", () => {
  const keys = configKeys();
  expect(keys.length).toBeGreaterThan(150);
  expect(keys.filter(({ schema }) => !schema.description).map(({ path }) => path)).toEqual([]);
  expect(keys.filter((key) => unitOf(key) === undefined).map(({ path }) => path)).toEqual([]);
});

test("every failure code has a description", () => {
  expect([...meanings().keys()]).toEqual(Object.keys(CODES));
});

test("every command and every option has a description", () => {
  const silent = commands().filter(({ command }) => command.description() === "");
  expect(silent.map(({ path }) => path)).toEqual([]);
  const options = commands().flatMap(({ path, command }) =>
    command.options.map((option) => ({ path, option })),
  );
  expect(
    options.filter(({ option }) => option.description === "").map(({ path, option }) => path + option.flags),
  ).toEqual([]);
});
