// Sandbox and network access of sessions: a child never has more access than its requester (I13).

import { expect, test } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import {
  type ChainLink,
  containsSubagents,
  hasNetwork,
  isSandboxed,
  type SpawnChain,
} from "../../../src/core/rules/sandbox-policy.ts";
import type { SandboxMode } from "../../../src/core/shapes/settings/settings.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";

const OFF = { mode: "off", network: false };
const BOXED = { mode: "all", network: false };
const ONLINE = { mode: "all", network: true };

function settingsOf(boxes: Readonly<Record<string, object>>) {
  const agents = Object.entries(boxes).map(([id, box]) => {
    const agent = agentSettings(id);
    return { ...agent, sandbox: { ...agent.sandbox, ...box } };
  });
  return settingsWith({ agents });
}

/**
 * Returns a chain of sessions of these agents. Each session spawned the next one. `above`: the deleted
 * requester of the last one.
 */
function chainOf(agentIds: readonly [string, ...string[]], above?: string): SpawnChain {
  const keys = agentIds.map((id, index) => `agent:${id}:subagent:${index}`);
  const links = agentIds.map((agentId, index): ChainLink => {
    const spawnedBy = keys[index + 1] ?? above;
    const key = keys[index] ?? "";
    return { key, agentId, kind: "other", spawnDepth: 0, ...optional({ spawnedBy }) };
  });
  return links as unknown as SpawnChain;
}

test.each<[SandboxMode, ChainLink["kind"], boolean]>([
  ["off", "main", false],
  ["off", "other", false],
  ["non-main", "main", false],
  ["non-main", "other", true],
  ["non-main", "group", true],
  ["non-main", "cron", true],
  ["all", "main", true],
])("SB1: sandbox mode %s applies to a session of kind %s: %j", (mode, kind, expected) => {
  const settings = settingsOf({ main: { mode } });
  const session: ChainLink = { key: "agent:main:main", agentId: "main", kind, spawnDepth: 0 };
  expect(isSandboxed([session], settings)).toBe(expected);
  expect(settings.agents.map(containsSubagents)).toEqual([mode !== "off"]);
});

test("I13: a sub-agent is sandboxed if its requester is or if its spawn asks for a sandbox, whatever its agent's mode", () => {
  const settings = settingsOf({ main: OFF, boxed: BOXED });
  expect(isSandboxed(chainOf(["main", "boxed"]), settings)).toBe(true);
  expect(isSandboxed(chainOf(["main", "main", "boxed"]), settings)).toBe(true);
  const [bare, ...above] = chainOf(["main", "main"]);
  expect(isSandboxed([bare, ...above], settings)).toBe(false);
  expect(isSandboxed([{ ...bare, spawn: { sandboxed: true } }, ...above], settings)).toBe(true);
});

test("SB2: a sandboxed session has network access only if every sandboxed session above it has it", () => {
  const settings = settingsOf({ offline: BOXED, online: ONLINE, bare: OFF });
  expect(hasNetwork(chainOf(["online"]), settings)).toBe(true);
  expect(hasNetwork(chainOf(["offline"]), settings)).toBe(false);
  expect(hasNetwork(chainOf(["online", "online"]), settings)).toBe(true);
  expect(hasNetwork(chainOf(["online", "offline"]), settings)).toBe(false);
  expect(hasNetwork(chainOf(["online", "online", "offline"]), settings)).toBe(false);
  expect(hasNetwork(chainOf(["offline", "online"]), settings)).toBe(false);
  // A session without a sandbox always has network access.
  expect(hasNetwork(chainOf(["online", "bare"]), settings)).toBe(true);
});

test("SB1: the setting of a requester's agent still applies after the requester is deleted", () => {
  const settings = settingsOf({ main: OFF, boxed: BOXED });
  expect(isSandboxed(chainOf(["main"], "agent:boxed:main"), settings)).toBe(true);
  expect(isSandboxed(chainOf(["main", "main"], "agent:boxed:main"), settings)).toBe(true);
  expect(isSandboxed(chainOf(["main"], "agent:main:main"), settings)).toBe(false);
  expect(isSandboxed(chainOf(["main"], "agent:nobody:main"), settings)).toBe(false);
});
