import fc from "fast-check";
import { expect, test } from "vitest";
import type { SpawnChain } from "../../src/core/rules/sandbox-policy.ts";
import { SANDBOX_MODES } from "../../src/core/shapes/settings/settings.ts";
import { toolNames, toolsFor } from "../../src/tools/catalog.ts";
import { agentSettings, settingsWith } from "./app.ts";

const AGENTS = ["main", "research", "boxed"].map((id) => {
  const base = agentSettings(id);
  return id === "boxed" ? { ...base, sandbox: { ...base.sandbox, mode: "all" as const } } : base;
});

const names = toolNames();
const list = fc.subarray([...names, "*", "sessions_*", "*e*"]);
const filter = fc.record({
  allow: fc.oneof(fc.constant<string[]>([]), list),
  deny: fc.oneof(fc.constant<string[]>([]), list),
});
const IDS = AGENTS.map(({ id }) => id);
const config = fc
  .record({
    agents: fc.tuple(...IDS.map(() => fc.record({ tools: filter, mode: fc.constantFrom(...SANDBOX_MODES) }))),
    filters: fc.record({ filter, subagents: filter, sandbox: filter }),
    maxSpawnDepth: fc.integer({ min: 1, max: 5 }),
  })
  .map(({ agents, filters, maxSpawnDepth }) =>
    settingsWith({
      agents: agents.map(({ tools, mode }, at) => {
        const base = agentSettings(IDS[at] ?? "main", { tools });
        return { ...base, sandbox: { ...base.sandbox, mode } };
      }),
      tools: filters,
      subagents: { maxSpawnDepth },
    }),
  );
const family = fc.array(fc.record({ agentId: fc.constantFrom(...IDS), sandboxed: fc.boolean() }), {
  minLength: 2,
  maxLength: 6,
});

test("I13: in any spawn chain, no session has a tool of the real catalogue that its requester lacks", () => {
  fc.assert(
    fc.property(config, family, (settings, seeds) => {
      const links = seeds.map(({ agentId, sandboxed }, depth) => ({
        key: `s${depth}`,
        agentId,
        kind: depth === 0 ? ("main" as const) : ("other" as const),
        spawnDepth: depth,
        ...(depth === 0 ? {} : { spawnedBy: `s${depth - 1}`, spawn: { sandboxed } }),
      }));
      let above = names;
      for (const depth of links.keys()) {
        const chain = links.slice(0, depth + 1).reverse() as unknown as SpawnChain;
        const own = toolsFor({ settings, chain }).map((tool) => tool.spec.name);
        for (const name of own) expect(above).toContain(name);
        above = own;
      }
    }),
    { numRuns: 500 },
  );
});
