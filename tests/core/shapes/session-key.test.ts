import { expect } from "vitest";
import { forkKey, forkOrigin } from "../../../src/core/fork-key.ts";
import {
  agentIdInKey,
  canonicalKey,
  channelOf,
  chatTypeOf,
  displayKey,
  encodeOutsideId,
  formatKey,
  isAgentId,
  isReservedKey,
  isSubagentKey,
  type KeyRules,
  kindOf,
  mainKeyOf,
  opensOnUse,
  parseKey,
  routeOfKey,
} from "../../../src/core/shapes/session-key.ts";
import { both as test } from "../../kit/deep.ts";
import { sessionRow } from "../rows.ts";

const RULES: KeyRules = { mainKey: "main", scope: "per-sender", defaultAgentId: "main" };
const GLOBAL: KeyRules = { ...RULES, scope: "global" };
const WHO = { agentId: "research" };
const UUID = "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11";

test("K2: an id from a platform adds neither parts nor invisible characters to a key", () => {
  expect(encodeOutsideId("a:b c%d\u0007")).toBe("a%3Ab%20c%25d%07");
  expect(encodeOutsideId("-100Äß")).toBe("-100Äß");
});

test.each([
  ["main", "agent:research:main"],
  [" main\n", "agent:research:main"],
  ["MAIN", "agent:research:main"],
  ["agent:Ops:main", "agent:ops:main"],
  ["agent:ops:MAIN", "agent:ops:main"],
  ["telegram:group:-1001", "agent:research:telegram:group:-1001"],
  ["Telegram:Group:AbC", "agent:research:telegram:group:AbC"],
  ["telegram:group:-1001:topic:42", "agent:research:telegram:group:-1001:topic:42"],
  ["discord:channel:123", "agent:research:discord:channel:123"],
  [`subagent:${UUID}`, `agent:research:subagent:${UUID}`],
  ["node:Phone-1", "node-Phone-1"],
  ["node-Phone-1", "node-Phone-1"],
  ["agent:ops:matrix:channel:!r%3aserver.org", "agent:ops:matrix:channel:!r%3Aserver.org"],
  ["agent:ops:whatsapp:group:a b", "agent:ops:whatsapp:group:a%20b"],
  ["agent:ops:whatsapp:group:%41", "agent:ops:whatsapp:group:A"],
  ["cron:Daily", "cron:Daily"],
  ["hook:github", "hook:github"],
  ["hook:gmail:42", "hook:gmail:42"],
  ["hook:gmail%3A42", "hook:gmail%3A42"],
  ["node:Phone:1", "node-Phone:1"],
  ["node-a:b c", "node-a:b%20c"],
  ["agent:ops:work", "agent:ops:work"],
  ["agent:OPS:Work in Progress", "agent:ops:Work%20in%20Progress"],
  ["agent:ops:acp-bridge:desk:1", "agent:ops:acp-bridge:desk:1"],
  ["agent:ops:explicit:a%3Ab", "agent:ops:explicit:a%3Ab"],
  ["agent:ops:main:extra", "agent:ops:main:extra"],
  ["agent:ops:telegram:grp:1", "agent:ops:telegram:grp:1"],
  ["unknown", "unknown"],
  ["global", "global"],
])("K3: %j means %j", (given, expected) => {
  expect(canonicalKey(given, WHO, RULES)).toEqual({ ok: true, value: expected });
});

test.each([
  [""],
  ["   "],
  [UUID],
  ["agent"],
  ["agent:"],
  ["agent:ops"],
  ["agent:ops:"],
  ["agent:o p s:main"],
  [`agent:${"a".repeat(65)}:main`],
  ["agent:ops:telegram:group:"],
  ["agent:ops:telegram:group:1:reply:2"],
  ["agent:ops:telegram:dm:1:thread:2"],
  ["agent:ops:matrix:channel:!r:server.org"],
  ["agent:ops:cron:group:1"],
  ["cron:"],
  ["cron:a:b"],
  ["cron:100%"],
  ["cron:%ff"],
  ["node-"],
  ["node-a:"],
  ["hook:a::b"],
  ["agent:ops:global"],
  ["agent:ops:Unknown"],
  ["agent:ops:node:1"],
  ["agent:ops:subagent:1:2"],
  ["agent:ops:work:"],
  ["agent:ops:telegram:group:%zz"],
  [`cron:${"x".repeat(508)}`],
  [`cron:${" ".repeat(200)}x`],
])("a malformed key %j is refused with one short line of the valid forms", (given) => {
  const result = canonicalKey(given, WHO, RULES);
  expect(result).toMatchObject({ ok: false, code: "invalid_session_key" });
  const hint = result.ok ? "" : (result.hint ?? "");
  for (const form of [
    "agent:<agentId>:main",
    "agent:<agentId>:<name>",
    "cron:<id>",
    "hook:<id>",
    "node-<id>",
  ]) {
    expect(hint).toContain(form);
  }
  expect(hint.length).toBeLessThan(350);
  expect(result).not.toHaveProperty("details");
});

test.each([
  ["work", "agent:ops:work"],
  [" My work ", "agent:ops:My%20work"],
  ["acp:1", "agent:ops:acp:1"],
  ["explicit:a:b", "agent:ops:explicit:a:b"],
  ["telegram:group:5", "agent:ops:telegram:group:5"],
  ["main", "agent:ops:main"],
  ["global", "global"],
])(
  "named sessions: people may write the name %j for %j, but a tool does not accept the name as a key",
  (given, expected) => {
    expect(canonicalKey(given, { agentId: "ops", bareNames: true }, RULES)).toEqual({
      ok: true,
      value: expected,
    });
    const tool = canonicalKey(given, { agentId: "ops" }, RULES);
    if (given.trim() === "work" || given === "explicit:a:b") expect(tool.ok).toBe(false);
  },
);

test.each([
  "",
  // A uuid is a session id.
  UUID,
  UUID.toUpperCase(),
  "agent:",
  "cron:a:b",
  "subagent:1:2",
  "a::b",
  "x%zz",
  "x".repeat(510),
])("named sessions: %j is not accepted as a name", (given) => {
  expect(canonicalKey(given, { agentId: "ops", bareNames: true }, RULES).ok).toBe(false);
});

test("named sessions: only names, and keys of editors, create a session when they are first used", () => {
  const opens = ["agent:a:work", "agent:a:acp-bridge:1", `agent:a:acp:${UUID}`, "agent:a:explicit:x:y"];
  const others = [
    "agent:a:main",
    "agent:a:MAIN",
    `agent:a:chat:${UUID}`,
    `agent:a:subagent:${UUID}`,
    "agent:a:mcp:x",
  ];
  const more = [
    "agent:a:openai:x",
    "agent:a:telegram:group:1",
    "cron:x",
    "hook:x:y",
    "node-x",
    "global",
    "unknown",
  ];
  for (const key of opens) expect(opensOnUse(key, RULES), key).toBe(true);
  for (const key of [...others, ...more]) expect(opensOnUse(key, RULES), key).toBe(false);
  expect([kindOf("agent:a:work", RULES), chatTypeOf("agent:a:work")]).toEqual(["other", ["direct"]]);
});

test("a key has at most 512 characters in its canonical form", () => {
  expect(parseKey(`cron:${"x".repeat(507)}`).ok).toBe(true);
  expect(parseKey(`cron:${"x".repeat(508)}`).ok).toBe(false);
  expect(parseKey(`cron:y${" ".repeat(300)}x`).ok).toBe(false);
});

test("the configured main key is the last part of the keys of main sessions, and `main` is an alias for it", () => {
  const rules = { ...RULES, mainKey: "Home" };
  expect(mainKeyOf("ops", rules)).toBe("agent:ops:Home");
  for (const text of ["main", "Home", "agent:research:main", "agent:research:Home"]) {
    expect(canonicalKey(text, WHO, rules)).toEqual({ ok: true, value: "agent:research:Home" });
  }
  expect(kindOf("agent:ops:Home", rules)).toBe("main");
  expect(displayKey("agent:ops:Home", "ops", rules)).toBe("main");
});

test("with scope `global`, every main session is `global`, and every agent sees it as `main`", () => {
  for (const text of ["main", "agent:ops:main", "global"]) {
    expect(canonicalKey(text, WHO, GLOBAL)).toEqual({ ok: true, value: "global" });
  }
  expect(displayKey("global", "ops", GLOBAL)).toBe("main");
  expect(displayKey("global", undefined, GLOBAL)).toBe("global");
  expect(kindOf("global", GLOBAL)).toBe("main");
  expect(agentIdInKey("global")).toBeUndefined();
});

test("a main session is shown as `main` to its own agent and with its full key to others", () => {
  expect(displayKey("agent:ops:main", "ops", RULES)).toBe("main");
  expect(displayKey("agent:ops:main", "research", RULES)).toBe("agent:ops:main");
  expect(displayKey("agent:ops:main", undefined, RULES)).toBe("agent:ops:main");
  expect(displayKey("cron:x", "ops", RULES)).toBe("cron:x");
});

test.each([
  ["agent:a:main", "main", ["direct"], "a"],
  ["agent:a:telegram:group:1", "group", ["group"], "a"],
  ["agent:a:telegram:group:1:topic:2", "group", ["thread", "group"], "a"],
  ["agent:a:discord:channel:1", "group", ["room"], "a"],
  ["agent:a:discord:channel:1:thread:2", "group", ["thread", "room"], "a"],
  ["agent:a:telegram:dm:1", "other", ["direct"], "a"],
  [`agent:a:chat:${UUID}`, "other", ["direct"], "a"],
  [`agent:a:subagent:${UUID}`, "other", [], "a"],
  ["agent:a:mcp:editor", "other", [], "a"],
  ["agent:a:acp:1", "other", [], "a"],
  ["agent:a:openai:ff", "other", [], "a"],
  ["cron:x", "cron", [], undefined],
  ["hook:x", "hook", [], undefined],
  ["node-x", "node", [], undefined],
  ["nonsense", "other", [], undefined],
])("%s has kind %s, chat types %j and agent %s", (key, kind, types, agent) => {
  expect(kindOf(key, RULES)).toBe(kind);
  expect(chatTypeOf(key)).toEqual(types);
  expect(agentIdInKey(key)).toBe(agent);
});

test("the key of a group, room, thread or person gives a route, with ids as the channel writes them", () => {
  expect(routeOfKey("agent:a:telegram:group:-1:topic:4")).toEqual({
    channel: "telegram",
    to: "-1",
    threadId: "4",
  });
  expect(routeOfKey("agent:a:matrix:channel:!r%3As.org")).toEqual({ channel: "matrix", to: "!r:s.org" });
  expect(routeOfKey("agent:a:signal:dm:+49 1")).toEqual({ channel: "signal", to: "+49 1" });
  for (const key of ["agent:a:main", "cron:x", "global", "unknown", "agent:a:mcp:x"]) {
    expect(routeOfKey(key)).toBeUndefined();
  }
});

test("a group has its stored channel, a direct chat the channel that was used last, and a job the channel `internal`", () => {
  const last = { channel: "signal", to: "x" };
  expect(channelOf(sessionRow("agent:a:telegram:group:1"))).toBe("telegram");
  expect(channelOf(sessionRow("agent:a:telegram:group:1", { groupChannel: "tg2", lastRoute: last }))).toBe(
    "tg2",
  );
  expect(channelOf(sessionRow("agent:a:main", { lastRoute: last }))).toBe("signal");
  expect(channelOf(sessionRow("agent:a:main"))).toBe("unknown");
  expect(channelOf(sessionRow("agent:a:telegram:dm:1"))).toBe("telegram");
  expect(channelOf(sessionRow("cron:x", { lastRoute: last }))).toBe("internal");
  expect(channelOf(sessionRow("hook:x"))).toBe("internal");
  expect(channelOf(sessionRow("node-x"))).toBe("internal");
  expect(channelOf(sessionRow(`agent:a:subagent:${UUID}`))).toBe("unknown");
});

test("agent ids have 1–64 lower-case letters, digits, _ and -", () => {
  for (const good of ["a", "main", "re-search_2", "a".repeat(64)]) expect(isAgentId(good)).toBe(true);
  for (const bad of ["", "A", "a b", "a:b", "ä", "a".repeat(65), "a\n"]) expect(isAgentId(bad)).toBe(false);
});

test("the only reserved names are global and unknown", () => {
  expect(["global", "unknown", "main", "agent:a:main"].map(isReservedKey)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("the key of a fork tells agent, chat type and sub-agent of its origin, and can't be used as a name", () => {
  const fork = (key: string) => forkKey(key, UUID);
  const [group, child] = ["agent:main:telegram:group:7", `agent:main:subagent:${UUID}`];
  expect(forkOrigin(fork(fork(group)))).toBe(fork(group));
  expect([forkOrigin(group), agentIdInKey(fork(group)), chatTypeOf(fork(group))]).toEqual([
    undefined,
    "main",
    ["group"],
  ]);
  expect([isSubagentKey(fork(child)), isSubagentKey(fork(group))]).toEqual([true, false]);
  expect([kindOf(fork("agent:main:main"), RULES), opensOnUse(fork("agent:main:work"), RULES)]).toEqual([
    "other",
    false,
  ]);
  expect(channelOf(sessionRow(fork(group), { groupChannel: "telegram" }))).toBe("telegram");
  for (const bad of [
    fork("global"),
    fork("agent:main"),
    `agent:main:work:%66ork:${UUID}`,
    `hook:%66ork:${UUID}`,
  ]) {
    expect(parseKey(bad), bad).toMatchObject({ ok: false });
  }
  const desk = { ...RULES, mainKey: "desk" };
  expect(canonicalKey(`agent:main:MAIN:FORK:${UUID.toUpperCase()}`, WHO, desk)).toEqual({
    ...{ ok: true, value: fork("agent:main:desk") },
  });
});

test("K2: an invisible character in a key is always escaped", () => {
  for (let code = 0; code <= 0x10ffff; code += 1) {
    const char = String.fromCodePoint(code);
    if (!/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/u.test(char)) continue;
    const key = formatKey({ form: "cron", id: `a${char}b` });
    expect(key).toMatch(/^cron:a(%[0-9A-F]{2})+b$/);
    expect(parseKey(key)).toMatchObject({ ok: true, value: { id: `a${char}b` } });
  }
});
