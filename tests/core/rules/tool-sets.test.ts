// The tools of a session, in any spawn tree with any configuration. policies.test.ts tests single filters.

import fc from "fast-check";
import { expect } from "vitest";
import {
  type ChainLink,
  isSandboxed,
  requesterOf,
  type SpawnChain,
} from "../../../src/core/rules/sandbox-policy.ts";
import {
  decideTool,
  filtersFor,
  SESSION_TOOLS,
  type ToolRule,
  withheldTools,
} from "../../../src/core/rules/tool-policy.ts";
import { SANDBOX_MODES, type Settings, type ToolFilter } from "../../../src/core/shapes/settings/settings.ts";
import { rounds, both as test } from "../../kit/deep.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";

const NAMES = [...SESSION_TOOLS, "read", "write", "edit", "exec"];
const PLAIN = ["read", "write", "edit", "exec"];
const NESTING = ["sessions_list", "sessions_history", "sessions_spawn", "agents_list", "subagents"];
const AGENTS = ["main", "ops", "research"];

/**
 * Returns the chain of a session, with the session first. `agents`: the agents from the root to the session.
 */
function chainOf(agents: readonly string[], more: readonly Partial<ChainLink>[] = []): SpawnChain {
  const links = agents.map((agentId, at): ChainLink => {
    const above = `s${at - 1}`;
    const kind = at === 0 ? ("main" as const) : ("other" as const);
    const spawned = at === 0 ? {} : { spawnedBy: above };
    return { key: `s${at}`, agentId, kind, spawnDepth: at, ...spawned, ...more[at] };
  });
  const [own, ...rest] = links.reverse();
  if (own === undefined) throw new Error("an empty chain");
  return [own, ...rest];
}
const NONE: ToolFilter = { allow: [], deny: [] };

interface Seed {
  readonly tools: ToolFilter;
  readonly subagents: ToolFilter;
  readonly sandbox: ToolFilter;
  readonly agents: readonly { tools: ToolFilter; mode: (typeof SANDBOX_MODES)[number] }[];
  readonly maxSpawnDepth: number;
}
function settingsOf(seed: Seed): Settings {
  return settingsWith({
    agents: AGENTS.map((id, at) => {
      const { tools = NONE, mode = "off" } = seed.agents[at] ?? {};
      const base = agentSettings(id);
      return { ...base, tools, sandbox: { ...base.sandbox, mode } };
    }),
    tools: { filter: seed.tools, subagents: seed.subagents, sandbox: seed.sandbox },
    subagents: { maxSpawnDepth: seed.maxSpawnDepth },
  });
}

const patterns = fc.subarray([
  "*",
  "read",
  "exec",
  "sessions_*",
  "sessions_spawn",
  "agents_list",
  "*s*",
  "none",
]);
/** An empty allow list, which means no limit, must occur frequently. */
const allow = fc.oneof(fc.constant<string[]>([]), patterns);
const filter: fc.Arbitrary<ToolFilter> = fc.record({
  allow,
  deny: fc.oneof(fc.constant<string[]>([]), patterns),
});
const seeds: fc.Arbitrary<Seed> = fc.record({
  tools: filter,
  subagents: filter,
  sandbox: filter,
  agents: fc.tuple(
    ...AGENTS.map(() => fc.record({ tools: filter, mode: fc.constantFrom(...SANDBOX_MODES) })),
  ),
  maxSpawnDepth: fc.integer({ min: 1, max: 5 }),
});
const chains: fc.Arbitrary<SpawnChain> = fc
  .tuple(
    fc.array(fc.constantFrom(...AGENTS, "gone"), { minLength: 1, maxLength: 6 }),
    fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
    fc.nat(5),
  )
  .map(([agents, boxed, lost]) => {
    const chain = chainOf(
      agents,
      boxed.map((sandboxed, at) => (at > 0 && sandboxed ? { spawn: { sandboxed } } : {})),
    );
    // Some chains end early, because a requester was deleted.
    const kept = chain.slice(0, Math.max(1, chain.length - lost)) as unknown as SpawnChain;
    return lost <= 2 ? kept : chain;
  });
const toolsOf = (chain: SpawnChain, seed: Seed): string[] => {
  const filters = filtersFor(chain, settingsOf(seed));
  return NAMES.filter((name) => decideTool(name, filters).allowed);
};

test("I13: with any configuration, a child's tools are a subset of its requester's, along the whole chain", () => {
  fc.assert(
    fc.property(seeds, chains, (seed, chain) => {
      const above = requesterOf(chain);
      if (above === undefined || above === "gone") return;
      const requester = toolsOf(above, seed);
      for (const name of toolsOf(chain, seed)) expect(requester).toContain(name);
      if (isSandboxed(above, settingsOf(seed))) expect(isSandboxed(chain, settingsOf(seed))).toBe(true);
    }),
    { numRuns: rounds(400, 2000) },
  );
});

test("I13: no tool is added by a new deny rule, a lower depth limit, a sandbox or the deletion of a requester", () => {
  const narrower = fc.constantFrom("deny", "depth", "sandbox", "gone");
  fc.assert(
    fc.property(seeds, chains, narrower, fc.constantFrom(...NAMES), (seed, chain, how, name) => {
      const before = toolsOf(chain, seed);
      const after = {
        deny: () => toolsOf(chain, { ...seed, tools: { ...seed.tools, deny: [...seed.tools.deny, name] } }),
        depth: () => toolsOf(chain, { ...seed, maxSpawnDepth: 1 }),
        sandbox: () =>
          toolsOf(chain, { ...seed, agents: seed.agents.map((one) => ({ ...one, mode: "all" })) }),
        gone: () => {
          // The limits of a deleted requester are unknown, so its sub-agent has no session tools.
          const orphan = toolsOf([chain[0]], seed).filter((tool) => !PLAIN.includes(tool));
          return chain[0].spawnedBy === undefined ? [] : orphan;
        },
      }[how]();
      for (const tool of after) expect(before).toContain(tool);
    }),
    { numRuns: rounds(400, 2000) },
  );
});

test("at the depth limit no configuration allows a spawn", () => {
  fc.assert(
    fc.property(seeds, chains, (seed, chain) => {
      if (chain[0].spawnDepth < seed.maxSpawnDepth) return;
      expect(toolsOf(chain, seed)).not.toContain("sessions_spawn");
    }),
    { numRuns: rounds(200, 1000) },
  );
});

const OPEN: Seed = { tools: NONE, subagents: NONE, sandbox: NONE, agents: [], maxSpawnDepth: 1 };
const sorted = (names: readonly string[]): string[] => [...names].sort();

test.each<[string, Partial<Seed>, readonly string[], readonly string[]]>([
  ["a main session has every tool", {}, ["main"], NAMES],
  ["a sub-agent has no session tools", {}, ["main", "main"], PLAIN],
  [
    "a sub-agent above the limit can look around and spawn",
    { maxSpawnDepth: 2 },
    ["main", "ops"],
    [...PLAIN, ...NESTING],
  ],
  [
    "a sub-agent at a raised limit has no session tools",
    { maxSpawnDepth: 2 },
    ["main", "ops", "main"],
    PLAIN,
  ],
  [
    "an allow list for sub-agents replaces their rule, but for sessions_spawn",
    { subagents: { allow: ["read", "sessions_send", "sessions_spawn"], deny: [] } },
    ["main", "main"],
    ["read", "sessions_send"],
  ],
  [
    "an allow list that is there to nest must list sessions_spawn",
    { subagents: { allow: ["sessions_*"], deny: ["sessions_send"] }, maxSpawnDepth: 2 },
    ["main", "main"],
    ["sessions_list", "sessions_history", "sessions_spawn", "sessions_search"],
  ],
  [
    "the filter for sub-agents is not a main session's",
    { subagents: { allow: ["read"], deny: ["exec"] } },
    ["main"],
    NAMES,
  ],
  ["the filter for sandboxes is not for others", { sandbox: { allow: [], deny: ["exec"] } }, ["main"], NAMES],
])("%s", (_, more, agents, expected) => {
  expect(sorted(toolsOf(chainOf(agents), { ...OPEN, ...more }))).toEqual(sorted(expected));
});

test("the sandbox filter applies to a sandboxed session and to all of its sub-agents", () => {
  const boxed = { tools: NONE, mode: "non-main" as const };
  const seed: Seed = { ...OPEN, agents: [boxed], sandbox: { allow: [], deny: ["exec"] } };
  expect(toolsOf(chainOf(["main"]), seed)).toContain("exec");
  expect(toolsOf(chainOf(["main", "main"]), seed)).not.toContain("exec");
  expect(toolsOf(chainOf(["ops", "research"], [{}, { spawn: { sandboxed: true } }]), seed)).not.toContain(
    "exec",
  );
  expect(toolsOf(chainOf(["ops", "main", "research"]), seed)).not.toContain("exec");
});

test("I13: a session whose requester was deleted keeps its own tools but has no session tools", () => {
  const seed: Seed = { ...OPEN, maxSpawnDepth: 5, subagents: { allow: ["*"], deny: [] } };
  const orphan = chainOf(["main", "main"]).slice(0, 1) as unknown as SpawnChain;
  expect(sorted(toolsOf(orphan, seed))).toEqual(sorted(PLAIN));
  expect(sorted(toolsOf(chainOf(["main", "main"]), seed))).toEqual(sorted(NAMES));
});

test("I13: tools denied to the requester's agent stay denied after the requester is deleted", () => {
  const agents = [{ tools: { allow: [], deny: ["exec"] }, mode: "off" as const }];
  const orphan = chainOf(["main", "ops"], [{}, { spawnedBy: "agent:main:chat:1" }])[0];
  expect(toolsOf([orphan], { ...OPEN, agents })).toEqual(["read", "write", "edit"]);
});

test("withheldTools returns the tools that the child's agent has but its requester lacks", () => {
  const agents = [{ tools: { allow: [], deny: ["exec", "sessions_list"] }, mode: "off" as const }];
  const settings = settingsOf({ ...OPEN, agents });
  expect(withheldTools(NAMES, chainOf(["main", "ops"]), settings)).toEqual(["exec"]);
  expect(withheldTools(NAMES, chainOf(["ops", "main"]), settings)).toEqual([]);
  expect(withheldTools(NAMES, chainOf(["main"]), settings)).toEqual([]);
});

test("a tool's own rule counts for the session and for those above it, and is no limit of the requester", () => {
  const settings = settingsOf(OPEN);
  const denies = (deny: "child" | "requester"): ToolRule[] => [
    {
      tool: "exec",
      denied: ([{ spawnedBy }]) =>
        (spawnedBy === undefined) === (deny === "requester") ? "it may not" : undefined,
    },
  ];
  const chain = chainOf(["ops", "ops"]);
  const verdict = (rules: readonly ToolRule[]) => decideTool("exec", filtersFor(chain, settings, rules));
  expect(verdict([])).toMatchObject({ allowed: true });
  for (const who of ["child", "requester"] as const)
    expect(verdict(denies(who))).toMatchObject({
      allowed: false,
      error: expect.stringContaining("it may not"),
    });
  expect(withheldTools(["exec"], chain, settings, denies("child"))).toEqual([]);
  expect(withheldTools(["exec"], chain, settings, denies("requester"))).toEqual(["exec"]);
});
