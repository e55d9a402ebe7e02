// The tools that a session has, and the errors for calls of other tools.

import { expect, test } from "vitest";
import { describeTools, toolsFor } from "../../src/tools/catalog.ts";
import { agentSettings, MAIN_CHAIN, openApp, settingsWith } from "./app.ts";

const MAIN = "agent:main:main";
const NAMES = [
  "sessions_list",
  "sessions_history",
  "sessions_send",
  "sessions_spawn",
  "agents_list",
  "session_status",
  "sessions_search",
  "subagents",
  "send_file",
  "read",
  "write",
  "edit",
  "grep",
  "glob",
  "fetch",
  "exec",
  "memory",
  "cron",
];

const agent = agentSettings("main");
const namesWith = (tools: object, own = agent) =>
  toolsFor({ settings: settingsWith({ tools, agents: [own] }), chain: MAIN_CHAIN }).map(
    (tool) => tool.spec.name,
  );

test("by default a session has every tool", () => {
  expect(namesWith({})).toEqual(NAMES);
});

test("for a denied tool, the catalogue and the error of a call name the setting that denies it", async () => {
  const agents = [agentSettings("main", { tools: { allow: [], deny: ["exec"] } })];
  const app = await openApp({ agents, tools: { filter: { allow: [], deny: ["sessions_s*"] } } });
  const described = describeTools({ settings: app.settings, chain: MAIN_CHAIN });
  expect(described.map((tool) => tool.name)).toEqual(NAMES);
  expect(described.find((tool) => tool.name === "exec")).toMatchObject({
    allowed: false,
    reason: expect.stringContaining("agents.list[main].tools.deny"),
  });
  expect(described.find((tool) => tool.name === "read")).toMatchObject({
    allowed: true,
    reason: "no filter denies it",
  });
  const sent = await app.call(MAIN, "sessions_send", { bogus: true });
  expect(sent).toMatchObject({ status: "forbidden", code: "tool_denied" });
  expect(sent.error).toContain("tools.deny");
  await app.close();
});

test("the error for an unknown tool names the most similar tool and lists the session's tools", async () => {
  const app = await openApp({ tools: { filter: { allow: [], deny: ["exec"] } } });
  const result = await app.call(MAIN, "session_send", {});
  expect(result).toMatchObject({ status: "error", code: "unknown_tool" });
  expect(result.error).toContain("did you mean sessions_send?");
  expect(result.hint).toContain("sessions_history");
  expect(result.hint).not.toContain("exec");
  for (const name of ["", "__proto__", "toString", "x".repeat(10_000), "sessions_list\u0000"]) {
    const odd = await app.call(MAIN, name, {});
    expect(odd).toMatchObject({ code: "unknown_tool" });
    expect(String(odd.error).length).toBeLessThan(300);
  }
  await app.close();
});

test("schemas are simple: object, properties and required, no unions, no integers, enum for strings only", () => {
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, item] of Object.entries(value)) {
      expect(["anyOf", "oneOf", "allOf", "const"]).not.toContain(name);
      if (name === "type") expect(item).not.toBe("integer");
      if (name === "enum") expect(value).toMatchObject({ type: "string" });
      walk(item);
    }
  };
  for (const tool of toolsFor({ settings: settingsWith(), chain: MAIN_CHAIN })) {
    expect(tool.spec.parameters.type).toBe("object");
    walk(tool.spec.parameters);
  }
});
