// The sessions that a sub-agent sees: its own tree, and otherwise at most those that its requester sees.
// visibility.test.ts tests other sessions.

import fc from "fast-check";
import { expect } from "vitest";
import type { ChainLink, SpawnChain } from "../../../src/core/rules/sandbox-policy.ts";
import {
  type AccessRules,
  decideAccess,
  effectiveMode,
  identityOf,
  type Scope,
  type SessionIdentity,
  scopeOf,
  type Target,
} from "../../../src/core/rules/visibility.ts";
import {
  SANDBOX_MODES,
  type Settings,
  VISIBILITY_MODES,
} from "../../../src/core/shapes/settings/settings.ts";
import { rounds, both as test } from "../../kit/deep.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";

const AGENTS = ["main", "ops", "research"];

interface World {
  readonly settings: Settings;
  readonly sessions: readonly (ChainLink & Target)[];
}
const agents = fc.tuple(
  ...AGENTS.map((id) =>
    fc
      .record({
        mode: fc.constantFrom(...SANDBOX_MODES),
        sessionToolsVisibility: fc.constantFrom("spawned" as const, "all" as const),
      })
      .map((box) => ({ ...agentSettings(id), sandbox: { ...agentSettings(id).sandbox, ...box } })),
  ),
);
/** Random trees of sessions. The requester of each session comes before it, or was deleted. */
const world: fc.Arbitrary<World> = fc
  .record({
    agents,
    seeds: fc.array(
      fc.record({
        agentId: fc.constantFrom(...AGENTS),
        parent: fc.option(fc.nat(12), { nil: undefined }),
        isCron: fc.boolean(),
        sandboxed: fc.boolean(),
        archived: fc.boolean(),
      }),
      { minLength: 1, maxLength: 10 },
    ),
  })
  .map(({ agents: list, seeds }) => {
    const sessions: (ChainLink & Target)[] = [];
    seeds.forEach(({ agentId, parent, isCron, sandboxed, archived }, at) => {
      const above = parent === undefined ? undefined : sessions[parent];
      const spawnedBy = parent === undefined ? undefined : (above?.key ?? "agent:main:subagent:lost");
      const spawned = spawnedBy === undefined ? {} : { spawnedBy, spawn: { sandboxed } };
      const root = isCron ? `cron:${at}` : `agent:${agentId}:chat:${at}`;
      sessions.push({
        key: spawnedBy === undefined ? root : `agent:${agentId}:subagent:${at}`,
        agentId,
        kind: isCron ? "cron" : "other",
        spawnDepth: above === undefined ? 0 : above.spawnDepth + 1,
        ancestors: above === undefined ? [] : [above.key, ...above.ancestors],
        archived,
        ...spawned,
      });
    });
    return { settings: settingsWith({ agents: list }), sessions };
  });
const rules: fc.Arbitrary<AccessRules> = fc.record({
  mode: fc.constantFrom(...VISIBILITY_MODES),
  agentToAgent: fc.record({ enabled: fc.boolean(), allow: fc.subarray(["main", "ops", "re*"]) }),
  scope: fc.constant("per-sender" as const),
});

function chainOf(given: World, own: ChainLink): SpawnChain {
  const above = given.sessions.find(({ key }) => key === own.spawnedBy);
  return above === undefined ? [own] : [own, ...chainOf(given, above)];
}
const viewerOf = (given: World, own: ChainLink): SessionIdentity =>
  identityOf(chainOf(given, own), given.settings);
const sees = (viewer: SessionIdentity, to: Target, by: AccessRules): boolean =>
  decideAccess("read", { kind: "session", ...viewer }, to, by).allowed;
const inTree = (key: string, to: Target): boolean => to.key === key || to.ancestors.includes(key);

test("I13: a sub-agent sees its own tree, and otherwise only sessions that its requester sees", () => {
  fc.assert(
    fc.property(world, rules, (given, by) => {
      for (const own of given.sessions) {
        const viewer = viewerOf(given, own);
        for (const to of given.sessions) {
          if (!sees(viewer, to, by) || inTree(own.key, to)) continue;
          expect(viewer.requester).not.toBe("gone");
          if (viewer.requester === undefined || viewer.requester === "gone") continue;
          expect(sees(viewer.requester, to, by)).toBe(true);
        }
      }
    }),
    { numRuns: rounds(200, 1000) },
  );
});

test("I13: a sub-agent sees sessions that both it and its requester may see; a requester never hides the sub-agent's own tree", () => {
  fc.assert(
    fc.property(world, rules, (given, by) => {
      for (const own of given.sessions) {
        const viewer = viewerOf(given, own);
        const { requester, ...alone } = viewer;
        for (const to of given.sessions) {
          const above = requester === undefined || (requester !== "gone" && sees(requester, to, by));
          const tree = by.mode !== "self" && !to.archived && inTree(own.key, to);
          const both = sees(alone, to, by) && (above || inTree(own.key, to));
          expect(sees(viewer, to, by)).toBe(both || tree);
        }
      }
    }),
    { numRuns: rounds(200, 1000) },
  );
});

test("I13: if a requester is limited by its sandbox, so are its children, whatever their own agent's setting is", () => {
  fc.assert(
    fc.property(world, rules, (given, by) => {
      for (const own of given.sessions) {
        const viewer = viewerOf(given, own);
        if (viewer.requester === undefined || viewer.requester === "gone") continue;
        const { requester } = viewer;
        if (!requester.sandboxed) continue;
        expect(viewer.sandboxed).toBe(true);
        if (requester.sandboxClamp !== "spawned") continue;
        for (const to of given.sessions) {
          if (sees(viewer, to, by)) expect(inTree(requester.key, to)).toBe(true);
        }
      }
    }),
    { numRuns: rounds(100, 500) },
  );
});

test("I9: a refusal to a sub-agent is the same for existing and missing sessions", () => {
  fc.assert(
    fc.property(world, rules, (given, by) => {
      for (const own of given.sessions) {
        const viewer = { kind: "session" as const, ...viewerOf(given, own) };
        for (const to of given.sessions.filter(({ archived }) => !archived)) {
          const real = decideAccess("read", viewer, to, by);
          const named = to.key.startsWith("agent:") ? to.agentId : "";
          const imagined = decideAccess("read", viewer, { ...to, agentId: named, ancestors: [] }, by);
          if (!real.allowed && !imagined.allowed) expect(real).toEqual(imagined);
        }
      }
    }),
    { numRuns: rounds(200, 1000) },
  );
});

/** Returns what the database decides about a session. */
function inScope(scope: Scope, to: Target): boolean {
  if (scope.all) throw new Error("a session sees everything");
  const { self, treeOf, agentIds = [], sharesGlobal = false, within } = scope;
  if (to.key === self || (treeOf !== undefined && inTree(treeOf, to))) return true;
  const ofAgent = agentIds === "any" || agentIds.includes(to.agentId);
  return (ofAgent || (sharesGlobal && to.key === "global")) && (within === undefined || inScope(within, to));
}

test("I9: the database finds exactly the sessions that a sub-agent may see", () => {
  fc.assert(
    fc.property(world, rules, (given, by) => {
      for (const own of given.sessions) {
        const viewer = viewerOf(given, own);
        const scope = scopeOf({ kind: "session", ...viewer }, by, AGENTS);
        for (const to of given.sessions.filter(({ archived }) => !archived))
          expect(inScope(scope, to)).toBe(sees(viewer, to, by));
      }
    }),
    { numRuns: rounds(100, 500) },
  );
});

test("a refusal names the session whose visibility is too narrow, and the settings that would widen it", () => {
  const by: AccessRules = {
    mode: "agent",
    agentToAgent: { enabled: false, allow: [] },
    scope: "per-sender",
  };
  const bare = { sandboxed: false, sandboxClamp: "spawned" } as const;
  const requester = { key: "agent:ops:main", agentId: "ops", ...bare };
  const kid = {
    kind: "session" as const,
    key: "agent:research:subagent:1",
    agentId: "research",
    ...bare,
  };
  const to: Target = { key: "agent:research:main", agentId: "research", archived: false, ancestors: [] };
  const refusal = (viewer: Parameters<typeof decideAccess>[1]) => decideAccess("read", viewer, to, by);
  expect(refusal(kid).allowed).toBe(true);
  expect(refusal({ ...kid, requester })).toMatchObject({
    code: "not_visible",
    error: expect.stringContaining("the session that spawned this one does not see it: it would need"),
    settings: ['tools.sessions.visibility: "all"', "tools.agentToAgent.enabled: true"],
  });
  expect(refusal({ ...kid, requester: "gone" })).toMatchObject({
    code: "not_visible",
    error: expect.stringContaining("was deleted, so this session sees only its own tree"),
    settings: [],
  });
  expect(effectiveMode({ ...kid, requester: "gone" }, by)).toBe("tree");
  expect(effectiveMode({ ...kid, requester: "gone" }, { ...by, mode: "self" })).toBe("self");
  const boxed = { ...kid, sandboxed: true };
  expect(refusal({ ...boxed, sandboxClamp: "all" }).allowed).toBe(true);
  expect(refusal(boxed).allowed).toBe(false);
});
