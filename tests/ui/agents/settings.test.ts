// The form of an agent's settings: fields from the schema, entries from the file, and the changes that save it.

import { expect, test } from "vitest";
import { configKeys, keyWords } from "../../../src/config/schema/keys.ts";
import type { AgentDetails } from "../../../src/contract/methods/agents.ts";
import { rightsWords } from "../../../ui/src/agents/rights.ts";
import { changesOf, entriesIn, fieldsIn } from "../../../ui/src/agents/settings.ts";

const FILE = `{ agents: { defaults: { thinking: "high" }, list: [ { id: "main" },
  // Ours.
  { id: "Ops", model: 'local/m', tools: { deny: ["exec", "fetch"] }, budget: { dailyCost: null },
    instructions: "One.\\nTwo $\${HOME}.", runtime: { token: "secret" } },
] } }`;
const groupsOf = () => fieldsIn(configKeys().map(keyWords), ["local/m"], entriesIn(FILE, "ops").defaults);
const fields = () => groupsOf().flatMap((group) => group.fields);

test("AS1: every setting of an agent is in one group of another title, with words instead of places in the file, but no secret", () => {
  const names = fields().map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const group of groupsOf()) expect(group.fields.map(({ title }) => title)).not.toContain(group.title);
  const wanted =
    "model instructions thinking tools.allow subagents.allowAgents budget.dailyCost sandbox.mode";
  expect(names).toEqual(expect.arrayContaining(wanted.split(" ")));
  expect(names.filter((name) => /^(id|default$|runtime)/.test(name))).toEqual([]);
  expect(fields().filter(({ description = "" }) => /agents\.|tools\.exec/.test(description))).toEqual([]);
  expect(fields().find(({ name }) => name === "thinking")).toMatchObject({
    type: "choice",
    fallback: "high",
  });
});

test("AS1: the entries of an agent are those of the file, and only the changed ones are written back", () => {
  const { own } = entriesIn(FILE, "ops");
  expect(own).toMatchObject({
    model: "local/m",
    "tools.deny": "exec, fetch",
    "budget.dailyCost": "none",
    instructions: "One.\nTwo ${HOME}.",
  });
  expect(entriesIn("{}", "main").own).toBeUndefined();
  expect(entriesIn("{ agents: { list: [ {", "main").own).toBeUndefined();
  const entries = {
    model: "",
    "tools.deny": "exec,  mcp__* ",
    "budget.dailyCost": "2.5",
    instructions: "${A}",
  };
  expect(changesOf(fields(), "ops", entries, true)).toEqual([
    { path: "agents.list.ops.model", unset: true },
    { path: "agents.list.ops.tools.deny", value: ["exec", "mcp__*"] },
    { path: "agents.list.ops.budget.dailyCost", value: 2.5 },
    { path: "agents.list.ops.instructions", value: "$${A}" },
  ]);
  expect(changesOf(fields(), "main", { thinking: "low" }, false)).toEqual([
    { path: "agents.list.main", value: { default: true } },
    { path: "agents.list.main.thinking", value: "low" },
  ]);
});

test("rights are said in words, with how commands are held back, and not at all to a reader who may not know", () => {
  const sandbox = { mode: "all", backend: "auto", network: false };
  const agent = {
    runtime: "built-in",
    sandbox,
    tools: ["read", "exec"],
    approval: "risky",
  } as unknown as AgentDetails;
  const isolated =
    "May read files and run commands (risky ones need approval; in a sandbox without network).";
  expect(rightsWords(agent)).toBe(isolated);
  expect(rightsWords({ ...agent, tools: [] })).toBe("May only answer.");
  const { tools: _, ...unknown } = agent;
  expect(rightsWords(unknown)).toBeUndefined();
});
