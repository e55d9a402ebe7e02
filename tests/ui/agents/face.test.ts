// The marks of agents: their colours and letters.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { AGENT_COLORS } from "../../../src/core/shapes/settings/settings.ts";
import { agentIn, faceIn, markOf, withAgentName } from "../../../ui/src/agents/face.ts";

test("AF1: colour and letters follow from id and name, whatever the script, and settings replace them", () => {
  const letters = (name: string, icon?: string) =>
    markOf({ id: "x", name, ...(icon && { icon }) })["data-letters"];
  expect(letters("Research")).toBe("Re");
  expect(letters("data-pipeline team")).toBe("dp");
  expect(letters("研究助手")).toBe("研究");
  expect(letters("ग्राहक")).toBe("ग्राह");
  expect(letters("Research", "🔬")).toBe("🔬");
  expect(letters("Research", "👩‍🔬")).toBe("👩‍🔬");
  expect(letters("\u202Eevil")).not.toContain("\u202E");
  expect(markOf({ id: "ops", color: "pink" }).class).toBe("agent-mark agent-pink");
});

test("AF1: agents have different colours as long as there are some, and a set colour is left to its agent", () => {
  const color = AGENT_COLORS[0];
  const ids = AGENT_COLORS.map((_, at) => `agent-${at}`);
  const agents = ids.map((id) => ({ id, default: false, model: "m", ...(id === "agent-5" && { color }) }));
  const list = { defaultId: "agent-0", mainKey: "main", scope: "per-sender", agents };
  const classOf = (id: string) => markOf(faceIn(list, id)).class;
  expect(new Set(ids.map(classOf)).size).toBe(ids.length);
  expect(classOf("agent-5")).toBe(`agent-mark agent-${color}`);
  expect(classOf("elsewhere")).toBe(markOf({ id: "elsewhere" }).class);
});

test("a main session has the name of its agent, unless it has one of its own", () => {
  const list = { defaultId: "ops", mainKey: "main", scope: "per-sender" };
  const agents = [{ id: "ops", name: "Operations", default: true, model: "offline/rehearsal" }];
  const named = (key: string, name: string) => withAgentName({ ...list, agents }, key, name);
  expect(named("agent:ops:main", "ops")).toBe("Operations");
  expect(named("agent:ops:main", "the pager")).toBe("the pager");
  expect(named("agent:main:main", "main")).toBe("main");
  expect(agentIn("agent:ops:chat:a:b")).toBe("ops");
  expect(agentIn("(not visible)")).toBe("");
});

/** Returns the relative luminance of a colour, as WCAG 2 defines it. */
function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test("the letters of a mark have a contrast of at least 4.5 on every colour, in both themes", () => {
  const css = readFileSync(new URL("../../../ui/src/styles/tokens.css", import.meta.url), "utf8");
  const colour = (name: string) => new RegExp(`--${name}: (#[0-9a-f]{6});`).exec(css)?.[1] ?? "";
  const dark = luminance(colour("on-agent"));
  for (const name of AGENT_COLORS)
    expect((luminance(colour(`agent-${name}`)) + 0.05) / (dark + 0.05), name).toBeGreaterThan(4.5);
});
