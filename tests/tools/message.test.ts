// The tool `message`: allowed destinations, the transcript in which the text is stored, and the sessions that
// have the tool.

import { afterEach, expect, test } from "vitest";
import { sessionViewer } from "../../src/access/access.ts";
import type { Session } from "../../src/core/shapes/session.ts";
import type { Settings } from "../../src/core/shapes/settings/settings.ts";
import { putPeer } from "../../src/store/queries/channels/channel-peers.ts";
import { updateSession } from "../../src/store/queries/sessions/sessions.ts";
import { lastMessages } from "../../src/store/queries/transcripts/transcripts.ts";
import { callTool, toolsFor } from "../../src/tools/catalog.ts";
import { telegramAccount } from "../kit/platforms/people-channel.ts";
import { type App, agentSettings, type Choices, MAIN_CHAIN, openApp, settingsWith } from "./app.ts";

const MAIN = "agent:main:main";
const GROUP = "agent:main:telegram:group:-100";
const OTHER = "agent:research:telegram:group:-200";

let apps: App[] = [];
afterEach(async () => {
  for (const app of apps) await app.close();
  apps = [];
});

const SET_UP = telegramAccount("default", {
  allowFrom: ["42", "telegram:43", "*"],
  groups: {
    "-300": { enabled: true, requireMention: true },
    "-400": { enabled: false, requireMention: true },
    "*": { enabled: true, requireMention: true },
  },
});

async function open(choices: Choices = {}): Promise<App> {
  const app = await openApp({ channels: [SET_UP], tools: { visibility: "agent" }, ...choices });
  apps.push(app);
  await app.add(GROUP, { kind: "group", groupChannel: "telegram" });
  await app.add(OTHER, { kind: "group", groupChannel: "telegram" });
  await app.engine.commit((unit) =>
    updateSession(unit.tx, MAIN, { lastRoute: { channel: "telegram", to: "7", accountId: "default" } }),
  );
  return app;
}

const say = (app: App, to: string, more: object = {}, caller = MAIN) =>
  app.call(caller, "message", { channel: "telegram", to, message: "hello", ...more });

const rows = ({ engine }: App) => engine.store.db.selectFrom("deliveries").selectAll().execute();

test("the tool can write to people of its own agent, of a session to which it may send, and in the settings", async () => {
  const app = await open();
  for (const to of ["7", "-100", "42", "telegram:43", "-300"]) {
    expect(await say(app, to)).toMatchObject({
      status: "accepted",
      channel: "telegram",
      accountId: "default",
    });
  }
  const kept = await rows(app);
  expect(kept.map(({ route_json }) => JSON.parse(route_json).to)).toEqual(["7", "-100", "42", "43", "-300"]);
  expect(
    kept.every(
      ({ state, session_key, kind }) => `${state} ${session_key} ${kind}` === `pending ${MAIN} send`,
    ),
  ).toBe(true);
});

test("KP3: every unknown destination gets the same error, which names the settings that would allow it", async () => {
  const app = await open();
  const strange = await say(app, "-200");
  expect(strange).toMatchObject({ status: "forbidden", code: "not_visible" });
  expect(strange.hint).toContain('channels.telegram.groups with "-200"');
  const nowhere = await say(app, "-999");
  expect(JSON.stringify(strange).replaceAll("-200", "-999")).toBe(JSON.stringify(nowhere));
  // A wildcard allows no destination, and a disabled entry counts as unknown.
  for (const to of ["99", "-400", "*"]) expect(await say(app, to)).toMatchObject({ code: "not_visible" });
  expect(await say(app, "-100", { accountId: "work" })).toMatchObject({ code: "channel_unknown" });
  expect(await say(app, "-100", { channel: "pigeon" })).toMatchObject({ code: "channel_unknown" });
  expect(await say(app, "main", { channel: "webchat" })).toMatchObject({ code: "channel_unknown" });
  expect(await rows(app)).toEqual([]);
});

test("the tool can write to an approved person's chat, but not to a person who waits for approval or is blocked", async () => {
  const app = await open();
  const who = { channel: "telegram", accountId: "default", askedAt: 0, toldAt: 0 };
  await app.engine.commit(async ({ tx }) => {
    const route = { channel: "telegram", to: "dm-51", accountId: "default" };
    await putPeer(tx, { ...who, peerId: "51", state: "approved", route });
    await putPeer(tx, { ...who, peerId: "52", state: "pending", code: "ABCDEFGH" });
    await putPeer(tx, { ...who, peerId: "53", state: "blocked" });
  });
  expect(await say(app, "51")).toMatchObject({ status: "accepted", to: "dm-51" });
  for (const to of ["52", "53"]) expect(await say(app, to)).toMatchObject({ code: "not_visible" });
});

test("I9: people of another agent can be reached only if agent-to-agent is enabled", async () => {
  const closed = await open({ tools: { visibility: "all", agentToAgent: { enabled: false, allow: [] } } });
  expect(await say(closed, "-200")).toMatchObject({ code: "not_visible" });
  const app = await open({ tools: { visibility: "all", agentToAgent: { enabled: true, allow: [] } } });
  expect(await say(app, "-200")).toMatchObject({ status: "accepted" });
});

test("ME1: if a call is repeated, it makes one delivery, even if the rules have changed", async () => {
  const app = await open();
  const context = app.context(await app.session(MAIN));
  const call = {
    callId: "run:1:0",
    attempt: 1,
    name: "message",
    arguments: { channel: "telegram", to: "-100", message: "once" },
  };
  const first = await callTool(context, call);
  await app.engine.commit((unit) => updateSession(unit.tx, MAIN, { sendPolicy: "deny" }));
  const settings: Settings = { ...app.settings, channels: [] };
  expect(await callTool({ ...context, settings }, { ...call, attempt: 2 })).toEqual(first);
  expect(await rows(app)).toHaveLength(1);
});

test("O2: an agent in a loop can't fill the outbox, because the pending texts for each destination are limited", async () => {
  const app = await open();
  const sent = await Promise.all(Array.from({ length: 210 }, () => say(app, "7")));
  expect(sent.filter(({ status }) => status === "accepted")).toHaveLength(200);
  expect(sent.at(-1)).toMatchObject({ status: "error", code: "queue_full" });
  expect(await rows(app)).toHaveLength(200);
  expect(await say(app, "-100")).toMatchObject({ status: "accepted" });
});

test("ME2: the send policy is checked for the sender and also for the destination", async () => {
  const rules = [{ match: { chatType: "group" as const }, action: "deny" as const }];
  const app = await open({ session: { sendPolicy: { rules, default: "allow" } } });
  expect(await say(app, "-100")).toMatchObject({ status: "forbidden", code: "send_denied" });
  expect(await say(app, "42")).toMatchObject({ status: "accepted" });
  await app.engine.commit((unit) => updateSession(unit.tx, MAIN, { sendPolicy: "deny" }));
  expect(await say(app, "42")).toMatchObject({ status: "forbidden", code: "send_denied" });
});

test("ME3: a text to the people of another session is stored in the transcript of that session, and no route changes (I10)", async () => {
  const app = await open();
  const before = await app.session(GROUP);
  await say(app, "-100", { message: "the build is broken" });
  const { sessionId, lastRoute } = await app.session(GROUP);
  const read = () => lastMessages(app.engine.store.db, sessionId, 5, { includeTools: true });
  await expect
    .poll(read)
    .toMatchObject([
      { role: "assistant", stopReason: "injected", content: [{ text: "the build is broken" }] },
    ]);
  expect(lastRoute).toEqual(before.lastRoute);
  await say(app, "7", { message: "to my own" });
  const own = await lastMessages(app.engine.store.db, (await app.session(MAIN)).sessionId, 5, {
    includeTools: true,
  });
  expect(own).toEqual([]);
});

test("each invalid argument gives an error", async () => {
  const app = await open();
  expect(await say(app, "7", { message: "  " })).toMatchObject({ code: "invalid_argument" });
  expect(await say(app, "")).toMatchObject({ code: "invalid_argument" });
  expect(await say(app, "7\u0000")).toMatchObject({ code: "invalid_argument" });
  expect(await say(app, "7", { message: "x".repeat(300_000) })).toMatchObject({ code: "too_large" });
  expect(await say(app, "7", { text: "x" })).toMatchObject({ code: "unknown_argument" });
  expect(await app.call(MAIN, "message", { to: "7" })).toMatchObject({ code: "invalid_argument" });
  expect(await rows(app)).toEqual([]);
});

const namesFor = (settings: Settings, chain = MAIN_CHAIN): string[] =>
  toolsFor({ settings, chain }).map(({ spec }) => spec.name);

test("the tool is offered only if a channel is configured, and by default not to sub-agents", () => {
  expect(namesFor(settingsWith())).not.toContain("message");
  const settings = settingsWith({ channels: [SET_UP] });
  expect(namesFor(settings)).toContain("message");
  const child = {
    key: "agent:main:subagent:x",
    agentId: "main",
    kind: "other",
    spawnDepth: 1,
    spawnedBy: MAIN,
  } as const;
  expect(namesFor(settings, [child, MAIN_CHAIN[0]])).not.toContain("message");
});

test("KP2: a sandboxed session can write only to destinations of sessions that it can see", async () => {
  const contained = agentSettings("main");
  const agents = [
    { ...contained, sandbox: { ...contained.sandbox, mode: "all" as const } },
    agentSettings("research"),
  ];
  const app = await open({ agents });
  const asked = async (to: string) => {
    const caller: Session = await app.session(MAIN);
    const viewer = sessionViewer([caller], app.settings);
    return app.call(MAIN, "message", { channel: "telegram", to, message: "hello" }, viewer);
  };
  expect(await asked("7")).toMatchObject({ status: "accepted" });
  for (const to of ["-100", "42", "-300"]) expect(await asked(to)).toMatchObject({ code: "not_visible" });
});
