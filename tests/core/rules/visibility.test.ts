import fc from "fast-check";
import { expect } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import type { ChainLink, SpawnChain } from "../../../src/core/rules/sandbox-policy.ts";
import { hasScope } from "../../../src/core/rules/scopes.ts";
import {
  type Access,
  type AccessRules,
  decideAccess,
  effectiveMode,
  identityOf,
  type Scope,
  type SessionIdentity,
  scopeOf,
  type Target,
  type Viewer,
} from "../../../src/core/rules/visibility.ts";
import {
  SANDBOX_MODES,
  type Settings,
  type TokenScope,
  VISIBILITY_MODES,
} from "../../../src/core/shapes/settings/settings.ts";
import { matchesPattern } from "../../../src/core/text/pattern.ts";
import { rounds, both as test } from "../../kit/deep.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";

const AGENTS = ["main", "ops", "research"];
const ALL_ACCESS: Access[] = [
  "list",
  "read",
  "search",
  "send",
  "spawn",
  "status",
  "events",
  "deliveries",
  "counts",
];
const CLOSED: AccessRules = {
  mode: "tree",
  agentToAgent: { enabled: false, allow: [] },
  scope: "per-sender",
};

const session = (key: string, agentId: string, sandboxed = false): Extract<Viewer, { kind: "session" }> => ({
  kind: "session",
  key,
  agentId,
  sandboxed,
  sandboxClamp: "spawned",
});
const target = (key: string, agentId: string, fields: Partial<Target> = {}): Target => ({
  key,
  agentId,
  archived: false,
  ancestors: [],
  ...fields,
});

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
    const others = ["global", "unknown"].map((key) => ({
      ...{ key, agentId: "main", kind: "main" as const, spawnDepth: 0, ancestors: [], archived: false },
    }));
    return { settings: settingsWith({ agents: list }), sessions: [...sessions, ...others] };
  });
const rules: fc.Arbitrary<AccessRules> = fc.record({
  mode: fc.constantFrom(...VISIBILITY_MODES),
  agentToAgent: fc.record({
    enabled: fc.boolean(),
    allow: fc.subarray(["*", "main", "ops", "re*", "nobody"]),
  }),
  scope: fc.constantFrom("per-sender" as const, "global" as const),
});

const allows = (access: Access, viewer: Viewer, to: Target, by: AccessRules): boolean =>
  decideAccess(access, viewer, to, by).allowed;

function chainOf(given: World, own: ChainLink): SpawnChain {
  const above = given.sessions.find(({ key }) => key === own.spawnedBy);
  return above === undefined ? [own] : [own, ...chainOf(given, above)];
}
const viewerOf = (given: World, own: ChainLink): SessionIdentity =>
  identityOf(chainOf(given, own), given.settings);
const sees = (viewer: SessionIdentity, to: Target, by: AccessRules): boolean =>
  decideAccess("read", { kind: "session", ...viewer }, to, by).allowed;
const inTree = (key: string, to: Target): boolean => to.key === key || to.ancestors.includes(key);

/** Returns the sessions that have no rule of their own. */
const ordinary = (given: World) => given.sessions.filter(({ key }) => !["global", "unknown"].includes(key));

test("I9: self ⊆ tree ⊆ agent ⊆ all, for all sessions and viewers, with or without the sandbox limit", () => {
  fc.assert(
    fc.property(world, rules, fc.nat(), fc.boolean(), (given, by, pick, sandboxed) => {
      const from = given.sessions[pick % given.sessions.length] as Target;
      const viewer = session(from.key, from.agentId, sandboxed);
      for (const to of given.sessions) {
        const seen = VISIBILITY_MODES.map((mode) => allows("read", viewer, to, { ...by, mode }));
        seen.forEach((visible, at) => {
          if (visible) expect(seen.slice(at).every(Boolean)).toBe(true);
        });
      }
    }),
    { numRuns: rounds(200, 1000) },
  );
});

test("I9: a sandbox and its limit never make more sessions visible", () => {
  fc.assert(
    fc.property(world, rules, fc.nat(), (given, by, pick) => {
      const from = given.sessions[pick % given.sessions.length] as Target;
      for (const to of given.sessions) {
        const boxed = session(from.key, from.agentId, true);
        const clamped = allows("send", boxed, to, by);
        const lifted = allows("send", { ...boxed, sandboxClamp: "all" }, to, by);
        const bare = allows("send", session(from.key, from.agentId, false), to, by);
        if (clamped) expect(lifted).toBe(true);
        expect(lifted).toBe(bare);
        if (clamped) expect(to.key === from.key || to.ancestors.includes(from.key)).toBe(true);
      }
    }),
    { numRuns: rounds(200, 1000) },
  );
});

test("I9: list, read and send by a session get the same decision", () => {
  fc.assert(
    fc.property(world, rules, fc.nat(), fc.boolean(), (given, by, pick, sandboxed) => {
      const from = given.sessions[pick % given.sessions.length] as Target;
      const viewer = session(from.key, from.agentId, sandboxed);
      for (const to of given.sessions) {
        expect(new Set(ALL_ACCESS.map((access) => allows(access, viewer, to, by))).size).toBe(1);
      }
    }),
  );
});

test("I9: archived sessions and the session key `unknown` are never visible to an agent", () => {
  fc.assert(
    fc.property(world, rules, fc.nat(), (given, by, pick) => {
      const from = given.sessions[pick % given.sessions.length] as Target;
      for (const to of given.sessions) {
        if (to.archived || to.key === "unknown") {
          expect(allows("list", session(from.key, from.agentId), to, by)).toBe(false);
        }
      }
    }),
  );
});

/** Returns what the database decides about a session. */
function inScope(scope: Scope, to: Target): boolean {
  if (scope.all) return true;
  const { self, treeOf, agentIds = [], sharesGlobal = false, patterns, within } = scope;
  if (patterns !== undefined && !patterns.some((pattern) => matchesPattern(pattern, to.key))) return false;
  if (to.key === self || (treeOf !== undefined && inTree(treeOf, to))) return true;
  const ofAgent = agentIds === "any" || agentIds.includes(to.agentId);
  return (ofAgent || (sharesGlobal && to.key === "global")) && (within === undefined || inScope(within, to));
}

test("I9: the database prefilter keeps every row that the visibility check allows", () => {
  const viewers = (from: Target, sandboxed: boolean, patterns: string[] | undefined): Viewer[] => {
    const { kind: _, ...identity } = session(from.key, from.agentId, sandboxed);
    const token = { kind: "operator" as const, scopes: ["operator.admin" as const] };
    const scoped = patterns === undefined ? token : { ...token, patterns };
    return [{ kind: "session", ...identity }, scoped, { ...scoped, as: identity }];
  };
  const somePatterns = fc.option(fc.subarray(["agent:ops:*", "cron:*", "*", "global"]), { nil: undefined });
  fc.assert(
    fc.property(
      world,
      rules,
      fc.nat(),
      fc.boolean(),
      somePatterns,
      (given, by, pick, sandboxed, patterns) => {
        const from = given.sessions[pick % given.sessions.length] as Target;
        for (const viewer of viewers(from, sandboxed, patterns)) {
          const scope = scopeOf(viewer, by, AGENTS);
          for (const to of given.sessions) {
            if (allows("list", viewer, to, by)) expect(inScope(scope, to)).toBe(true);
          }
        }
      },
    ),
    { numRuns: rounds(200, 1000) },
  );
});

test("I9: acting as a session allows only what both the token and the session allow", () => {
  fc.assert(
    fc.property(
      world,
      rules,
      fc.nat(),
      fc.subarray(["agent:ops:*", "cron:*"]),
      (given, by, pick, patterns) => {
        const from = given.sessions[pick % given.sessions.length] as Target;
        const { kind: _, ...as } = session(from.key, from.agentId);
        const token = { kind: "operator" as const, scopes: ["operator.read" as const], patterns };
        for (const to of given.sessions) {
          const both = allows("read", token, to, by) && allows("read", { kind: "session", ...as }, to, by);
          expect(allows("read", { ...token, as }, to, by)).toBe(both);
        }
      },
    ),
  );
});

test.each([
  ["self", "agent:ops:main", true],
  ["self", "agent:ops:subagent:kid", false],
  ["tree", "agent:ops:subagent:kid", true],
  ["tree", "agent:research:subagent:grandkid", true],
  ["tree", "agent:ops:telegram:group:1", false],
  ["agent", "agent:ops:telegram:group:1", true],
  ["agent", "agent:research:main", false],
  ["agent", "agent:research:subagent:grandkid", true],
  ["all", "agent:research:main", false],
] as const)(
  "with visibility %s and agentToAgent disabled, agent:ops:main sees %s: %j",
  (mode, key, expected) => {
    const ancestors: Record<string, string[]> = {
      "agent:ops:subagent:kid": ["agent:ops:main"],
      "agent:research:subagent:grandkid": ["agent:ops:subagent:kid", "agent:ops:main"],
    };
    const to = target(key, key.split(":")[1] ?? "", { ancestors: ancestors[key] ?? [] });
    expect(allows("read", session("agent:ops:main", "ops"), to, { ...CLOSED, mode })).toBe(expected);
  },
);

test.each([
  [true, [], true],
  [true, ["*"], true],
  [true, ["ops", "research"], true],
  [true, ["ops", "re*"], true],
  [true, ["research"], false],
  [true, ["ops"], false],
  [false, ["*"], false],
])(
  "with visibility `all`, agentToAgent enabled %j and allow %j, ops sees research: %j",
  (enabled, allow, expected) => {
    const by = { ...CLOSED, mode: "all" as const, agentToAgent: { enabled, allow } };
    const verdict = decideAccess(
      "send",
      session("agent:ops:main", "ops"),
      target("agent:research:main", "research"),
      by,
    );
    expect(verdict.allowed).toBe(expected);
    if (!verdict.allowed) expect(verdict.code).toBe("agent_to_agent");
  },
);

test("a refusal names exactly the settings that would allow the access", () => {
  const viewer = session("agent:ops:main", "ops");
  const settingsFor = (to: Target, by: AccessRules, from: Viewer = viewer): readonly string[] => {
    const verdict = decideAccess("read", from, to, by);
    if (verdict.allowed) throw new Error("allowed");
    for (const setting of verdict.settings) expect(verdict.error).toContain(setting);
    return verdict.settings;
  };
  const other = target("agent:research:main", "research");
  const sibling = target("agent:ops:telegram:group:1", "ops");
  const clamp = 'agents.defaults.sandbox.sessionToolsVisibility: "all"';
  expect(settingsFor(sibling, CLOSED)).toEqual(['tools.sessions.visibility: "agent"']);
  expect(settingsFor(other, CLOSED)).toEqual([
    'tools.sessions.visibility: "all"',
    "tools.agentToAgent.enabled: true",
  ]);
  expect(settingsFor(other, { ...CLOSED, mode: "all" })).toEqual(["tools.agentToAgent.enabled: true"]);
  const narrow = { ...CLOSED, mode: "all" as const, agentToAgent: { enabled: true, allow: ["ops"] } };
  expect(settingsFor(other, narrow)).toEqual(['tools.agentToAgent.allow with ["research"]']);
  const boxed = session("agent:ops:main", "ops", true);
  expect(settingsFor(sibling, { ...CLOSED, mode: "agent" }, boxed)).toEqual([clamp]);
  expect(settingsFor(sibling, CLOSED, boxed)).toEqual(['tools.sessions.visibility: "agent"', clamp]);
});

test("I9: after changing the settings that a refusal names, the access is allowed", () => {
  const apply = (by: AccessRules, settings: readonly string[]): AccessRules & { lifted?: true } => {
    let next: AccessRules & { lifted?: true } = by;
    for (const setting of settings) {
      if (setting.startsWith("tools.sessions.visibility")) {
        next = { ...next, mode: setting.includes('"agent"') ? "agent" : "all" };
      } else if (setting.startsWith("tools.agentToAgent.enabled")) {
        next = { ...next, agentToAgent: { ...next.agentToAgent, enabled: true } };
      } else if (setting.startsWith("tools.agentToAgent.allow")) {
        next = { ...next, agentToAgent: { ...next.agentToAgent, allow: AGENTS } };
      } else if (setting.includes("sessionToolsVisibility")) next = { ...next, lifted: true };
      else if (setting.startsWith("session.scope")) next = { ...next, scope: "global", mode: "agent" };
      else throw new Error(setting);
    }
    return next;
  };
  fc.assert(
    fc.property(world, rules, fc.nat(), fc.boolean(), (given, by, pick, sandboxed) => {
      const from = given.sessions[pick % given.sessions.length] as Target;
      const viewer = session(from.key, from.agentId, sandboxed);
      for (const to of given.sessions) {
        const verdict = decideAccess("read", viewer, to, by);
        if (verdict.allowed || verdict.settings.length === 0 || to.key === "global") continue;
        const after = apply(by, verdict.settings);
        const lifted = after.lifted === true ? { ...viewer, sandboxClamp: "all" as const } : viewer;
        expect(allows("read", lifted, to, after)).toBe(true);
      }
    }),
    { numRuns: rounds(200, 1000) },
  );
});

test("agents see the session `global` only with scope `global`, in which it is everybody's main session", () => {
  const viewer = session("cron:nightly", "ops");
  const global = target("global", "main");
  expect(allows("send", viewer, global, { ...CLOSED, mode: "all" })).toBe(false);
  expect(allows("send", viewer, global, { ...CLOSED, mode: "agent", scope: "global" })).toBe(true);
  expect(allows("send", viewer, global, { ...CLOSED, mode: "tree", scope: "global" })).toBe(false);
  expect(allows("send", session("global", "main"), global, { ...CLOSED, scope: "global" })).toBe(true);
});

test.each([
  ["operator.read", ["list", "read", "search", "status", "events", "counts"]],
  ["operator.write", ["list", "read", "search", "send", "spawn", "status", "events", "counts"]],
  ["operator.admin", ALL_ACCESS],
] as [TokenScope, Access[]][])("a token with scopes %s may use %j, and nothing else", (scope, expected) => {
  const viewer: Viewer = { kind: "operator", scopes: [scope] };
  const to = target("agent:ops:main", "ops", { archived: true });
  expect(ALL_ACCESS.filter((access) => allows(access, viewer, to, CLOSED))).toEqual(expected);
});

test("a refusal names the missing scope; a token without scopes has no rights", () => {
  const verdict = decideAccess("send", { kind: "operator", scopes: [] }, target("agent:a:main", "a"), CLOSED);
  expect(verdict).toMatchObject({ allowed: false, code: "missing_scope" });
  if (!verdict.allowed) expect(verdict.error).toContain("operator.write");
  expect(hasScope(["operator.admin"], "operator.read")).toBe(true);
  expect(hasScope(["operator.read"], "operator.write")).toBe(false);
});

test("a token sees the keys that match its patterns, in any visibility mode", () => {
  const viewer: Viewer = { kind: "operator", scopes: ["operator.read"], patterns: ["agent:ops:*", "cron:*"] };
  const self = { ...CLOSED, mode: "self" as const };
  expect(allows("read", viewer, target("agent:ops:main", "ops"), self)).toBe(true);
  expect(allows("read", viewer, target("cron:x", "research"), self)).toBe(true);
  expect(decideAccess("read", viewer, target("agent:research:main", "research"), self)).toMatchObject({
    allowed: false,
    code: "not_visible",
    settings: ["gateway.auth.tokens[].sessions"],
  });
});

test("an allowed access names the rule that allowed it", () => {
  const rule = (viewer: Viewer, to: Target, by: AccessRules): string => {
    const verdict = decideAccess("read", viewer, to, by);
    return verdict.allowed ? verdict.rule : `refused: ${verdict.error}`;
  };
  const main = session("agent:main:main", "main");
  const child = target("agent:ops:subagent:1", "ops", { ancestors: ["agent:main:main"] });
  const grandchild = target("agent:ops:subagent:2", "ops", { ancestors: [child.key, "agent:main:main"] });
  const sibling = target("agent:main:chat:1", "main");
  const other = target("agent:research:main", "research");
  const tree = { ...CLOSED, mode: "tree" as const };
  const all = { ...CLOSED, mode: "all" as const, agentToAgent: { enabled: true, allow: [] } };
  expect(rule(main, target("agent:main:main", "main"), CLOSED)).toBe("it is its own session");
  expect(rule(main, child, tree)).toBe('it spawned the session (tools.sessions.visibility is "tree")');
  expect(rule(main, grandchild, tree)).toContain("one of its sub-agents spawned the session");
  expect(rule(main, sibling, { ...CLOSED, mode: "agent" })).toBe(
    'same agent, and tools.sessions.visibility is "agent"',
  );
  expect(rule(main, other, all)).toBe(
    'tools.sessions.visibility is "all", and tools.agentToAgent is enabled for all agents',
  );
  const chosen = { ...all, agentToAgent: { enabled: true, allow: ["re*", "main"] } };
  expect(rule(main, other, chosen)).toBe(
    'tools.sessions.visibility is "all", and tools.agentToAgent is enabled and its allow has "main" and "re*"',
  );
  const mine = target("global", "main");
  expect(rule(main, mine, { ...CLOSED, mode: "agent", scope: "global" })).toContain('session.scope "global"');
  const spawned: Viewer = {
    ...session(child.key, "ops"),
    requester: session("agent:main:main", "main"),
  };
  expect(rule(spawned, other, all)).toContain("; and the session that spawned it sees it too: ");
  const token = (patterns?: string[]): Viewer => ({
    ...{ kind: "operator", scopes: ["operator.read"] },
    ...optional({ patterns }),
  });
  expect(rule(token(), other, CLOSED)).toBe("its operator token covers every session");
  expect(rule(token(["cron:*", "agent:*"]), other, CLOSED)).toBe(
    'its operator token covers the session by the pattern "agent:*"',
  );
});

test("I13: a sub-agent sees sessions that both it and its requester may see; a requester never hides the sub-agent's own tree", () => {
  fc.assert(
    fc.property(world, rules, (given, by) => {
      for (const own of ordinary(given)) {
        const viewer = viewerOf(given, own);
        const { requester, ...alone } = viewer;
        for (const to of ordinary(given)) {
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

test("I9: the database finds exactly the sessions that a sub-agent may see", () => {
  fc.assert(
    fc.property(world, rules, (given, by) => {
      for (const own of ordinary(given)) {
        const viewer = viewerOf(given, own);
        const scope = scopeOf({ kind: "session", ...viewer }, by, AGENTS);
        for (const to of ordinary(given).filter(({ archived }) => !archived))
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
