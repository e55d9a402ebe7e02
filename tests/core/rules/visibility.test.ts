import fc from "fast-check";
import { expect } from "vitest";
import { optional } from "../../../src/core/optional.ts";
import { hasScope } from "../../../src/core/rules/scopes.ts";
import {
  type Access,
  type AccessRules,
  decideAccess,
  type Scope,
  scopeOf,
  type Target,
  type Viewer,
} from "../../../src/core/rules/visibility.ts";
import { type TokenScope, VISIBILITY_MODES } from "../../../src/core/shapes/settings/settings.ts";
import { matchesPattern } from "../../../src/core/text/pattern.ts";
import { rounds, both as test } from "../../kit/deep.ts";

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

/** Random trees of sessions. The parent of each session comes before it. */
interface World {
  readonly sessions: readonly Target[];
}
const world: fc.Arbitrary<World> = fc
  .array(
    fc.record({
      agentId: fc.constantFrom(...AGENTS),
      parent: fc.option(fc.nat(20), { nil: undefined }),
      archived: fc.boolean(),
      form: fc.constantFrom("main", "subagent", "cron", "chat"),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((seeds) => {
    const sessions: Target[] = [];
    seeds.forEach(({ agentId, parent, archived, form }, at) => {
      const own =
        form === "cron" ? `cron:${at}` : `agent:${agentId}:${form}${form === "main" ? "" : `:${at}`}`;
      const above = parent === undefined ? undefined : sessions[parent];
      const ancestors = above === undefined ? [] : [above.key, ...above.ancestors];
      if (!sessions.some(({ key }) => key === own)) sessions.push({ key: own, agentId, archived, ancestors });
    });
    sessions.push(target("global", "main"), target("unknown", "main"));
    return { sessions };
  });

const agentToAgent = fc.record({
  enabled: fc.boolean(),
  allow: fc.subarray(["*", "main", "ops", "re*", "nobody"]),
});
const rules: fc.Arbitrary<AccessRules> = fc.record({
  mode: fc.constantFrom(...VISIBILITY_MODES),
  agentToAgent,
  scope: fc.constantFrom("per-sender" as const, "global" as const),
});
const allows = (access: Access, viewer: Viewer, to: Target, by: AccessRules): boolean =>
  decideAccess(access, viewer, to, by).allowed;

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

function inScope(scope: Scope, to: Target): boolean {
  if (scope.all) return true;
  if (scope.patterns !== undefined && !scope.patterns.some((pattern) => matchesPattern(pattern, to.key))) {
    return false;
  }
  const { self, treeOf, agentIds = [], sharesGlobal = false } = scope;
  if (to.key === self || (treeOf !== undefined && to.ancestors.includes(treeOf))) return true;
  return agentIds === "any" || agentIds.includes(to.agentId) || (sharesGlobal && to.key === "global");
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
