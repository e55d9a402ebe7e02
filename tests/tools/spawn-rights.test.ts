import fc from "fast-check";
import { expect, test } from "vitest";
import type { SpawnChain } from "../../src/core/rules/sandbox-policy.ts";
import { SANDBOX_MODES } from "../../src/core/shapes/settings/settings.ts";
import { toolNames, toolsFor } from "../../src/tools/catalog.ts";
import { agentSettings, openApp, settingsWith } from "./app.ts";

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

test("I13: a sub-agent lists only sessions of its own tree and sessions that its requester can list", async () => {
  const visibility = fc.constantFrom("self", "tree", "agent", "all");
  const forest = fc.array(
    fc.record({ agentId: fc.constantFrom("main", "research"), parent: fc.nat(7), isRoot: fc.boolean() }),
    { minLength: 3, maxLength: 8 },
  );
  const rules = fc.record({ visibility, enabled: fc.boolean(), seeds: forest });
  await fc.assert(
    fc.asyncProperty(rules, async ({ visibility: mode, enabled, seeds }) => {
      const tools = {
        visibility: mode,
        agentToAgent: { enabled, allow: [] },
        subagents: { allow: ["*"], deny: [] },
      };
      const own = await openApp({ agents: AGENTS, tools, subagents: { maxSpawnDepth: 5 } });
      const parents = new Map<string, string>();
      const keys: string[] = [];
      for (const [at, { agentId, parent, isRoot }] of seeds.entries()) {
        const above = isRoot ? undefined : keys[parent];
        const id = `0000000${at}-0000-4000-8000-000000000000`;
        const key = `agent:${agentId}:${above === undefined ? "chat" : "subagent"}:${id}`;
        const spawned = above === undefined ? {} : { spawnedBy: above, spawnDepth: 1 };
        await own.add(key, spawned);
        if (above !== undefined) parents.set(key, above);
        keys.push(key);
      }
      const seen = async (key: string) => {
        const { sessions = [] } = await own.call(key, "sessions_list", { limit: 200 });
        const full = (shown: string) => (shown === "main" ? `agent:${key.split(":")[1]}:main` : shown);
        return (sessions as { key: string }[]).map((row) => full(row.key));
      };
      const isBelow = (key: string | undefined, top: string): boolean =>
        key !== undefined && (key === top || isBelow(parents.get(key), top));
      for (const [key, above] of parents) {
        const requesters = await seen(above);
        for (const one of await seen(key))
          expect(requesters.includes(one) || isBelow(one, key), `${key} sees ${one}`).toBe(true);
      }
      await own.close();
    }),
    { numRuns: 25 },
  );
});
