// I9: one visibility check decides for every argument (key, session id, label), for sessions and for
// operators.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { operatorViewer, sessionViewer } from "../../src/access/access.ts";
import { resolveSession, type SessionTarget } from "../../src/access/resolve.ts";
import { type Access, identityOf, type Viewer } from "../../src/core/rules/visibility.ts";
import type { Result } from "../../src/core/shapes/errors.ts";
import type { Session } from "../../src/core/shapes/session.ts";
import type { TokenScope } from "../../src/core/shapes/settings/settings.ts";
import { resetSession } from "../../src/flows/session/lifecycle.ts";
import { type App, openApp } from "../tools/app.ts";

const MAIN = "agent:main:main";
const ALL: TokenScope[] = ["operator.admin"];
const CHILD = "agent:research:subagent:00000000-0000-4000-8000-000000000001";
const GRANDCHILD = "agent:writer:subagent:00000000-0000-4000-8000-000000000002";
const COUSIN = "agent:main:subagent:00000000-0000-4000-8000-000000000003";
const ARCHIVED = "agent:main:subagent:00000000-0000-4000-8000-000000000004";
const GROUP = "agent:main:telegram:group:-100Team";
const CHAT = "agent:main:chat:00000000-0000-4000-8000-000000000005";

async function withSessions(app: App): Promise<App> {
  await app.add(CHILD, { spawnedBy: MAIN, spawnDepth: 1 });
  await app.add(GRANDCHILD, { spawnedBy: CHILD, spawnDepth: 2 });
  await app.add(COUSIN, { spawnedBy: "agent:main:telegram:group:-100Team", spawnDepth: 1 });
  await app.add(ARCHIVED, { spawnedBy: MAIN, spawnDepth: 1, archivedAt: 1 });
  await app.add(GROUP);
  await app.add(CHAT, { label: "plans" });
  await app.add("cron:nightly", { agentId: "research" });
  return app;
}

function ask(
  app: App,
  viewer: Viewer,
  target: SessionTarget,
  access: Access = "read",
): Promise<Result<Session>> {
  return resolveSession({ db: app.engine.store.db, settings: app.settings }, viewer, access, target);
}

/**
 * Returns a refusal without the requested text, because the requested text determines the order of the
 * suggestions.
 */
function refusalOf(result: Result<Session>, wanted: string): string {
  if (result.ok) return "allowed";
  const closest = [...((result.details?.closest ?? []) as string[])].sort();
  const facts = { ...result, hint: "", details: { ...result.details, closest } };
  return JSON.stringify(facts).replaceAll(wanted, "WANTED");
}

const shown = (result: Result<Session>): string => (result.ok ? result.value.key : result.code);

describe("with every agent visible", () => {
  let app: App;
  let viewer: Viewer;
  beforeAll(async () => {
    app = await withSessions(await openApp());
    viewer = sessionViewer([await app.session(MAIN)], app.settings);
  });
  afterAll(() => app.close());

  test.each([
    ["main", MAIN],
    ["MAIN", MAIN],
    [" main ", MAIN],
    ["agent:research:main", "agent:research:main"],
    ["agent:Research:main", "agent:research:main"],
    ["telegram:group:-100Team", GROUP],
    [CHAT, CHAT],
    ["cron:nightly", "cron:nightly"],
    ["subagent:00000000-0000-4000-8000-000000000003", COUSIN],
  ])("%j means %s", async (text, key) => {
    expect(shown(await ask(app, viewer, { sessionKey: text }))).toBe(key);
  });

  test("`main` is the viewer's own main session; for an operator it is the main session of the default agent", async () => {
    const research = sessionViewer([await app.session("agent:research:main")], app.settings);
    expect(shown(await ask(app, research, { sessionKey: "main" }))).toBe("agent:research:main");
    expect(shown(await ask(app, operatorViewer(ALL), { sessionKey: "main" }))).toBe(MAIN);
  });

  test("a session id finds its session, in upper and lower case", async () => {
    const { sessionId } = await app.session(CHAT);
    expect(shown(await ask(app, viewer, { sessionKey: sessionId }))).toBe(CHAT);
    expect(shown(await ask(app, viewer, { sessionKey: sessionId.toUpperCase() }))).toBe(CHAT);
  });

  test("a session id that a reset has replaced gives an error that names the current id", async () => {
    const before = await app.add("agent:main:chat:00000000-0000-4000-8000-000000000009");
    const after = await resetSession(app, before);
    expect(after.ok).toBe(true);
    const result = await ask(app, viewer, { sessionKey: before.sessionId });
    expect(shown(result)).toBe("stale_session_id");
    expect(result.ok ? {} : result.details).toMatchObject({
      sessionKey: before.key,
      currentSessionId: after.ok ? after.value.sessionId : "",
    });
  });

  test("a viewer with access to all sessions gets an error for a missing session, with the closest keys", async () => {
    const result = await ask(app, viewer, { sessionKey: "agent:reserch:main" });
    expect(shown(result)).toBe("session_not_found");
    expect(result.ok ? {} : result.details?.closest).toContain("agent:research:main");
  });

  test.each(["agent:main:discord:channel:nope", "hook:nope", "node-nope", "agent:main:chat:nope"])(
    "a request for the missing session %s does not create the session",
    async (sessionKey) => {
      expect(shown(await ask(app, viewer, { sessionKey }, "send"))).toBe("session_not_found");
    },
  );

  test.each(["nonsense", "agent:", "a b c", "agent:main:telegram:group:"])(
    "the invalid key %j is refused with a list of the valid forms",
    async (sessionKey) => {
      const result = await ask(app, viewer, { sessionKey });
      expect(shown(result)).toBe("invalid_session_key");
      expect(result.ok ? "" : result.hint).toContain("agent:<agentId>:<channel>:(group|channel|dm):<id>");
    },
  );

  test("a name alone is refused with the key of the agent or of the session that has this name", async () => {
    await app.add("agent:main:reviewer");
    const hint = async (sessionKey: string) => {
      const result = await ask(app, viewer, { sessionKey });
      return result.ok ? "" : result.hint;
    };
    expect(await hint("research")).toContain("Did you mean agent:research:main? Valid forms");
    expect(await hint("reviewer")).toContain("Did you mean agent:main:reviewer? Valid forms");
    expect(await hint("zzzzz")).toMatch(/^Valid forms/);
  });

  test("the name of a joined window finds its session for agents and people, whichever agent has it", async () => {
    await app.add("agent:research:mcp:lector");
    const windows = ["agent:main:mcp:tester", "agent:research:mcp:tester", "agent:writer:mcp:tester"];
    for (const key of windows) await app.add(key);
    for (const one of [viewer, operatorViewer(ALL)]) {
      expect(shown(await ask(app, one, { sessionKey: " lector " }, "send"))).toBe(
        "agent:research:mcp:lector",
      );
      expect(shown(await ask(app, one, { label: "lector" }))).toBe("agent:research:mcp:lector");
    }
    expect(shown(await ask(app, viewer, { sessionKey: "tester" }))).toBe("agent:main:mcp:tester");
    expect(shown(await ask(app, viewer, { label: "tester", agentId: "writer" }))).toBe(windows[2]);
    expect(shown(await ask(app, operatorViewer(ALL), { sessionKey: "tester" }))).toBe("label_ambiguous");
    await app.add("agent:main:tester");
    expect(shown(await ask(app, operatorViewer(ALL), { sessionKey: "tester" }))).toBe("agent:main:tester");
  });

  test("an unknown session id is reported as not visible", async () => {
    const sessionKey = "00000000-0000-4000-8000-0000000000ff";
    expect(shown(await ask(app, viewer, { sessionKey }))).toBe("not_visible");
    expect(shown(await ask(app, operatorViewer(ALL), { sessionKey }))).toBe("session_not_found");
  });

  test.each(["global", "unknown", "GLOBAL"])(
    "the reserved name %s is not visible to an agent",
    async (name) => {
      expect(shown(await ask(app, viewer, { sessionKey: name }))).toBe("not_visible");
      expect(shown(await ask(app, operatorViewer(ALL), { sessionKey: "unknown" }))).toBe("not_visible");
    },
  );

  test("a label is first looked up among the sessions of the viewer's agent, then among all visible sessions", async () => {
    await app.add("agent:research:chat:00000000-0000-4000-8000-000000000010", { label: "notes" });
    expect(shown(await ask(app, viewer, { label: "plans" }))).toBe(CHAT);
    expect(shown(await ask(app, viewer, { label: " plans " }))).toBe(CHAT);
    expect(shown(await ask(app, viewer, { label: "notes" }))).toMatch(/^agent:research:chat/);
    expect(shown(await ask(app, viewer, { label: "notes", agentId: "main" }))).toBe("session_not_found");
    expect(shown(await ask(app, viewer, { label: "notes", agentId: "Research" }))).toMatch(
      /^agent:research:chat/,
    );
    expect(shown(await ask(app, operatorViewer(ALL), { label: "notes" }))).toMatch(/^agent:research:chat/);
  });

  test("if several sessions have the same label, the label is ambiguous, and the error lists their keys", async () => {
    const keys = ["agent:writer:chat:1", "agent:writer:chat:2"];
    for (const key of keys) await app.add(key, { label: "draft" });
    const result = await ask(app, viewer, { label: "draft", agentId: "writer" });
    expect(shown(result)).toBe("label_ambiguous");
    expect(result.ok ? [] : result.details?.keys).toEqual(expect.arrayContaining(keys));
  });

  test("the label of an archived session is not found", async () => {
    await app.add("agent:main:chat:3", { label: "old", archivedAt: 5 });
    expect(shown(await ask(app, viewer, { label: "old" }))).toBe("session_not_found");
  });
});

test.each(["agent", "all"] as const)(
  "mode %s: an archived session gives the same error as a missing one",
  async (visibility) => {
    const app = await withSessions(await openApp({ tools: { visibility } }));
    const viewer = sessionViewer([await app.session(MAIN)], app.settings);
    const absent = "agent:main:subagent:00000000-0000-4000-8000-0000000000aa";
    for (const access of ["read", "send", "status", "search"] as const) {
      const one = refusalOf(await ask(app, viewer, { sessionKey: ARCHIVED }, access), ARCHIVED);
      expect(one).toBe(refusalOf(await ask(app, viewer, { sessionKey: absent }, access), absent));
      expect(one).toContain('"session_not_found"');
    }
    await app.close();
  },
);

describe("a viewer that sees only its tree", () => {
  let app: App;
  let viewer: Viewer;
  beforeAll(async () => {
    app = await withSessions(await openApp({ tools: { visibility: "tree" } }));
    viewer = sessionViewer([await app.session(MAIN)], app.settings);
  });
  afterAll(() => app.close());

  test.each([
    ["agent:research:main", "agent:research:chat:nope"],
    [GROUP, "agent:main:telegram:group:nope"],
    ["cron:nightly", "cron:nope"],
    [COUSIN, "agent:main:subagent:00000000-0000-4000-8000-0000000000aa"],
  ])("for the hidden session %s the error is the same as for a missing session", async (hidden, absent) => {
    const one = refusalOf(await ask(app, viewer, { sessionKey: hidden }), hidden);
    const two = refusalOf(await ask(app, viewer, { sessionKey: absent }), absent);
    expect(one).toBe(two);
    expect(one).toContain('"not_visible"');
  });

  test("a refusal names the setting that would allow the access, and the closest visible keys", async () => {
    const other = await ask(app, viewer, { sessionKey: "agent:research:main" });
    expect(other.ok ? "" : other.error).toContain('tools.sessions.visibility: "all"');
    expect(other.ok ? "" : other.error).not.toContain("agentToAgent.enabled");
    const same = await ask(app, viewer, { sessionKey: GROUP });
    expect(same.ok ? "" : same.error).toContain('tools.sessions.visibility: "agent"');
    const closest = same.ok ? [] : (same.details?.closest as string[]);
    expect(closest).toContain("main");
    expect(closest).not.toContain(GROUP);
  });

  test("the error for the id of a hidden session reveals nothing about it", async () => {
    const hidden = (await app.session(GROUP)).sessionId;
    const absent = "00000000-0000-4000-8000-0000000000ff";
    const one = refusalOf(await ask(app, viewer, { sessionKey: hidden }), hidden);
    expect(one).toBe(refusalOf(await ask(app, viewer, { sessionKey: absent }), absent));
    expect(one).toContain('"not_visible"');
  });

  test("the error for the label of a hidden session reveals nothing about it", async () => {
    const hidden = await ask(app, viewer, { label: "plans" });
    const absent = await ask(app, viewer, { label: "plons" });
    expect(refusalOf(hidden, "plans")).toBe(refusalOf(absent, "plons"));
    expect(shown(hidden)).toBe("not_visible");
  });

  test("the error for the name of a hidden window reveals nothing about it", async () => {
    await app.add("agent:main:mcp:lector");
    for (const kind of ["sessionKey", "label"]) {
      const hidden = refusalOf(await ask(app, viewer, { [kind]: "lector" }), "lector");
      expect(hidden).toBe(refusalOf(await ask(app, viewer, { [kind]: "lectar" }), "lectar"));
    }
  });
});

describe("operators", () => {
  let app: App;
  beforeAll(async () => {
    app = await withSessions(await openApp({ tools: { visibility: "self" } }));
  });
  afterAll(() => app.close());

  test("a token without patterns sees all sessions in its scope, including archived ones", async () => {
    const reader = operatorViewer(["operator.read"]);
    expect(shown(await ask(app, reader, { sessionKey: ARCHIVED }))).toBe(ARCHIVED);
    expect(shown(await ask(app, reader, { sessionKey: "cron:nightly" }, "send"))).toBe("missing_scope");
    expect(shown(await ask(app, operatorViewer(["operator.write"]), { sessionKey: MAIN }, "send"))).toBe(
      MAIN,
    );
  });

  test("a token's patterns limit access by key, id and label", async () => {
    const viewer = operatorViewer(ALL, ["agent:research:*", "cron:*"]);
    expect(shown(await ask(app, viewer, { sessionKey: "agent:research:main" }))).toBe("agent:research:main");
    expect(shown(await ask(app, viewer, { sessionKey: "cron:nightly" }))).toBe("cron:nightly");
    expect(shown(await ask(app, viewer, { sessionKey: MAIN }))).toBe("not_visible");
    expect(shown(await ask(app, viewer, { sessionKey: (await app.session(MAIN)).sessionId }))).toBe(
      "not_visible",
    );
    expect(shown(await ask(app, viewer, { label: "plans" }))).toBe("not_visible");
    expect(shown(await ask(app, viewer, { sessionKey: "cron:absent" }))).toBe("session_not_found");
    expect(shown(await ask(app, viewer, { sessionKey: "hook:absent" }))).toBe("not_visible");
  });

  test("an operator who acts for a session sees only sessions that both the session and the token may see", async () => {
    const as = identityOf([await app.session(MAIN)], app.settings);
    const viewer = { ...operatorViewer(ALL), as };
    expect(shown(await ask(app, viewer, { sessionKey: "main" }))).toBe(MAIN);
    expect(shown(await ask(app, viewer, { sessionKey: GROUP }))).toBe("not_visible");
    const narrow: Viewer = { ...viewer, patterns: ["agent:research:*"] };
    expect(shown(await ask(app, narrow, { sessionKey: "main" }))).toBe("not_visible");
  });
});

test("with scope global, `main` of every agent is the global session; a session cannot use the global session's own key", async () => {
  const app = await openApp({ session: { scope: "global" }, tools: { visibility: "agent" } });
  const chat = await app.add("agent:research:chat:1");
  const viewer = sessionViewer([chat], app.settings);
  expect(shown(await ask(app, viewer, { sessionKey: "main" }))).toBe("global");
  expect(shown(await ask(app, viewer, { sessionKey: "agent:writer:main" }))).toBe("global");
  expect(shown(await ask(app, viewer, { sessionKey: "global" }))).toBe("not_visible");
  expect(shown(await ask(app, operatorViewer(ALL), { sessionKey: "global" }))).toBe("global");
  await app.close();
});
