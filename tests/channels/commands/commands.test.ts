// Chat commands, executed in a transaction of a real engine and store, with running sub-agents.

import { expect, test } from "vitest";
import type { InboundMessage } from "../../../src/channels/channel.ts";
import { performCommand, readCommand } from "../../../src/channels/commands.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import { insertSession, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { sessionRow } from "../../kit/engine/engine.ts";
import type { SpawnPlay } from "../../kit/engine/spawn-app.ts";
import { agentSettings } from "../../tools/app.ts";
import { GROUP, held, MAIN, open, requestOf, running, stateOf } from "./kit.ts";

const MESSAGE: InboundMessage = {
  channel: "telegram",
  accountId: "default",
  messageId: "1",
  chat: { type: "direct", id: "7" },
  sender: { id: "7" },
  text: "/stop",
  mentioned: false,
  media: [],
  sentAt: 0,
  replyTo: { channel: "telegram", to: "7" },
};

test("only an original message can be a command: captions, edits and forwarded messages cannot", () => {
  expect(readCommand(MESSAGE)).toEqual({ command: "stop", args: "" });
  expect(readCommand({ ...MESSAGE, quoted: { text: "/reset" } })).toEqual({ command: "stop", args: "" });
  expect(readCommand({ ...MESSAGE, text: "what?", quoted: { text: "/reset" } })).toBeUndefined();
  const media = [{ kind: "image", load: async () => ok(new Uint8Array()) }] as const;
  expect(readCommand({ ...MESSAGE, media })).toBeUndefined();
  expect(readCommand({ ...MESSAGE, edit: "2" })).toBeUndefined();
  expect(readCommand({ ...MESSAGE, forwarded: true })).toBeUndefined();
  expect(readCommand({ ...MESSAGE, text: "/frobnicate", nativeCommand: true })?.command).toBe("help");
});

test("a command for another bot is ignored, even if the own bot's name is unknown", () => {
  const named = { ...MESSAGE, accountName: "Parley_Bot" };
  expect(readCommand({ ...named, text: "/stop@parley_bot" })?.command).toBe("stop");
  expect(readCommand({ ...named, text: "/stop@other_bot", mentioned: true })).toBeUndefined();
  expect(readCommand({ ...MESSAGE, text: "/stop@somebody" })).toBeUndefined();
  expect(readCommand({ ...MESSAGE, text: "/stop@somebody", mentioned: true })?.command).toBe("stop");
});

test("CO2: an owner's command from another person is refused and changes nothing", async () => {
  const stage = await open({ play: held });
  const runId = await stage.says("telegram:9", "work", GROUP);
  await running(stage, runId);
  const before = await stage.session(GROUP);
  const inGroup = { chatType: "group", sessionKey: GROUP } as const;
  for (const line of ["/new", "/reset", "/model offline/rehearsal", "/send off"]) {
    expect(await stage.give(line, inGroup)).toMatch(/^\/\w+ is for owners only( in a group)?\.$/);
  }
  expect(await stage.give("/send off")).toBe("/send is for owners only.");
  expect(await stage.give("/new", { ...inGroup, chatType: "channel" })).toContain("owners only");
  expect(await stage.session(GROUP)).toEqual(before);
  expect(await stateOf(stage, runId)).toBe("running");
  // In the same group the command is allowed for an owner.
  expect(await stage.give("/model offline/rehearsal", { ...inGroup, isOwner: true })).toContain(
    "offline/rehearsal",
  );
  expect((await stage.session(GROUP))?.model).toBe("offline/rehearsal");
});

test("CW1: in a group people stop only their own runs, and an owner stops everything", async () => {
  const stage = await open({ play: held });
  const first = await stage.says("telegram:9", "mine", GROUP);
  const second = await stage.says("telegram:7", "yours", GROUP);
  await running(stage, first);
  const inGroup = { chatType: "group", sessionKey: GROUP } as const;
  expect(await stage.give("/stop", { ...inGroup, id: "8" })).toContain(
    "Only an owner, or the person who started",
  );
  expect(await stateOf(stage, first)).toBe("running");
  expect(await stage.give("/stop", { ...inGroup, id: "7" })).toBe("Stopped: 1 run that you began.");
  expect([await stateOf(stage, first), await stateOf(stage, second)]).toEqual(["running", "aborted"]);
  const third = await stage.says("telegram:7", "more", GROUP);
  expect(await stage.give("/stop", { ...inGroup, id: "1", isOwner: true })).toBe("Stopped: 2 runs.");
  expect([await stateOf(stage, first), await stateOf(stage, third)]).toEqual(["aborted", "aborted"]);
  expect(await stage.give("/stop", { ...inGroup, id: "7" })).toBe("Nothing is running here.");
});

test("CW1: a person in a group cannot stop runs that an operator started", async () => {
  const stage = await open({ play: held });
  await stage.call(GROUP, "sessions_spawn", { task: "dig" });
  const [child] = await stage.children(GROUP);
  const [job] = await stage.runs(child?.key ?? "");
  await running(stage, job?.runId ?? "");
  const runId = await stage.says("telegram:7", "mine", GROUP);
  await running(stage, runId);
  expect(await stage.give("/stop", { chatType: "group", sessionKey: GROUP, id: "7" })).toContain("1 run");
  expect([await stateOf(stage, runId), await stateOf(stage, job?.runId ?? "")]).toEqual([
    "aborted",
    "running",
  ]);
});

test("CO2: a direct chat that shares its session with groups has the same restrictions as a group", async () => {
  const stage = await open({ play: held });
  await stage.store.transaction((tx) => insertSession(tx, sessionRow("global", { kind: "main" })));
  const before = await stage.session("global");
  for (const line of ["/new", "/reset", "/model offline/rehearsal"]) {
    expect(await stage.give(line, { sessionKey: "global" })).toContain("is for owners only");
  }
  expect(await stage.session("global")).toEqual(before);
  expect(await stage.give("/model offline/rehearsal", { sessionKey: "global", isOwner: true })).toContain(
    "from the next message on",
  );
});

test("/stop stops the sub-agents of the person's own run, even after that run has finished", async () => {
  const play: SpawnPlay = (turn) =>
    turn.session.key === GROUP
      ? turn.tool("sessions_spawn", { task: "dig" }).then(() => "begun")
      : held(turn);
  const stage = await open({ play });
  const runId = await stage.says("telegram:7", "go", GROUP);
  await expect.poll(() => stateOf(stage, runId)).toBe("ok");
  const [child] = await stage.children(GROUP);
  const [job] = await stage.runs(child?.key ?? "");
  await running(stage, job?.runId ?? "");
  const inGroup = { chatType: "group", sessionKey: GROUP } as const;
  expect(await stage.give("/stop", { ...inGroup, id: "8" })).toContain(
    "Only an owner, or the person who started",
  );
  expect(await stateOf(stage, job?.runId ?? "")).toBe("running");
  expect(await stage.give("/stop", { ...inGroup, id: "7" })).toBe("Stopped: 1 run.");
  expect(await stateOf(stage, job?.runId ?? "")).toBe("aborted");
});

test("/new and /reset start a new transcript and cancel earlier runs; with arguments they change nothing", async () => {
  const stage = await open({ play: held });
  const runId = await stage.says("telegram:7", "old");
  await running(stage, runId);
  const before = await stage.session(MAIN);
  expect(await stage.give("/new tell me a joke")).toContain("takes no arguments");
  expect(await stage.session(MAIN)).toEqual(before);
  expect(await stage.give("/new")).toContain("1 run of the earlier one stopped");
  expect(await stateOf(stage, runId)).toBe("aborted");
  const after = await stage.session(MAIN);
  expect(after?.sessionId).not.toBe(before?.sessionId);
  await stage.give("/reset");
  expect((await stage.session(MAIN))?.sessionId).not.toBe(after?.sessionId);
});

test("/model, /think and /verbose show and set values; the answer to an invalid value lists the valid ones", async () => {
  const stage = await open();
  expect(await stage.give("/model")).toContain("`offline/rehearsal` (the agent's)");
  expect(await stage.give("/model nonsense")).toContain("valid: offline/rehearsal");
  expect((await stage.session(MAIN))?.model).toBeUndefined();
  expect(await stage.give("/model offline/rehearsal")).toContain("from the next message on");
  expect((await stage.session(MAIN))?.model).toBe("offline/rehearsal");
  expect(await stage.give("/model")).toContain("chosen here");
  await stage.give("/model default");
  expect((await stage.session(MAIN))?.model).toBeUndefined();

  expect(await stage.give("/think")).toMatch(/^Thinking is `off`\. Valid: off, minimal, low/);
  expect(await stage.give("/think hard")).toContain("Valid: off, minimal");
  await stage.give("/think HIGH");
  expect((await stage.session(MAIN))?.thinkingLevel).toBe("high");
  await stage.give("/think default");
  expect((await stage.session(MAIN))?.thinkingLevel).toBeUndefined();

  expect(await stage.give("/verbose loud")).toContain("Valid: off, on, full");
  await stage.give("/verbose full");
  expect((await stage.session(MAIN))?.verboseLevel).toBe("full");
});

test("the model of an agent that is an outside program cannot be changed", async () => {
  const runtime = {
    type: "acp" as const,
    command: ["agent"],
    env: {},
    permissions: "deny" as const,
    askSeconds: 1,
    sessionTools: false,
    idleMinutes: 1,
  };
  const stage = await open({ settings: { agents: [agentSettings("main", { runtime })] } });
  expect(await stage.give("/model offline/rehearsal")).toContain("chooses its own model");
  expect((await stage.session(MAIN))?.model).toBeUndefined();
});

test("/send is for owners: it sets and removes the session's own send policy", async () => {
  const stage = await open();
  const owner = { isOwner: true };
  expect(await stage.give("/send", owner)).toContain("`inherit` now");
  expect(await stage.give("/send maybe", owner)).toContain("on, off or inherit");
  await stage.give("/send off", owner);
  expect((await stage.session(MAIN))?.sendPolicy).toBe("deny");
  expect(await stage.give("/status", owner)).toContain("Its outgoing text is blocked");
  await stage.give("/send ON", owner);
  expect((await stage.session(MAIN))?.sendPolicy).toBe("allow");
  await stage.give("/send inherit", owner);
  expect((await stage.session(MAIN))?.sendPolicy).toBeUndefined();
});

test("I9: /sessions and /subagents list only sessions that are visible to the chat's session", async () => {
  const play: SpawnPlay = (turn) =>
    turn.input === "go"
      ? turn.tool("sessions_spawn", { task: "dig deep", label: "digger" }).then(() => "ok")
      : held(turn);
  const stage = await open({ play });
  await stage.says("telegram:7", "go");
  await stage.says("telegram:7", "go", GROUP);
  await expect
    .poll(async () => (await stage.children(MAIN)).length + (await stage.children(GROUP)).length)
    .toBe(2);
  const [mine] = await stage.children(MAIN);
  const [theirs] = await stage.children(GROUP);
  const seen = await stage.give("/sessions");
  expect(seen).toContain("`main`");
  expect(seen).toContain(mine?.key);
  expect(seen).not.toContain(theirs?.key);
  expect(seen).not.toContain(GROUP);
  // For this command the chat's session is the viewer, so an owner sees no more sessions than other people.
  expect(await stage.give("/sessions", { isOwner: true })).not.toContain(GROUP);

  const list = await stage.give("/subagents");
  expect(list).toContain("`digger`: running");
  expect(list).toContain("dig deep");
  expect(list.split("\n")).toHaveLength(1);
  for (const line of [`/subagents cancel ${theirs?.key}`, `/subagents log ${theirs?.key}`]) {
    expect(await stage.give(line)).toMatch(/^No sub-agent of this conversation is named/);
  }
  expect(await stage.give("/subagents cancel nobody")).toMatch(/^No sub-agent of this conversation is named/);
  const [job] = await stage.runs(theirs?.key ?? "");
  expect(await stateOf(stage, job?.runId ?? "")).toBe("running");
});

test("/subagents cancels a sub-agent by id or label, or all of them, and shows a sub-agent's last messages", async () => {
  const play: SpawnPlay = (turn) => {
    if (turn.input === "go")
      return turn.tool("sessions_spawn", { task: "dig", label: "digger" }).then(() => "ok");
    return held(turn);
  };
  const stage = await open({ play });
  for (const runId of [await stage.says("telegram:7", "go"), await stage.says("telegram:7", "go")]) {
    await expect.poll(() => stateOf(stage, runId)).toBe("ok");
  }
  const [first, second] = await stage.children(MAIN);
  expect(await stage.give("/subagents log digger")).toContain("Several sub-agents");
  const id = first?.key.split(":").at(-1) ?? "";
  await expect.poll(() => stage.give(`/subagents log ${id}`)).toContain("told: dig");
  expect(await stage.give(`/subagents cancel ${id.slice(0, 8)}`)).toBe("Cancelled: 1 sub-agent.");
  expect(await stage.give(`/subagents cancel ${id.slice(0, 8)}`)).toBe("There is nothing left to cancel.");
  expect(await stage.give("/subagents")).toContain("cancelled");
  expect(await stage.give("/subagents cancel all")).toBe("Cancelled: 1 sub-agent.");
  const [job] = await stage.runs(second?.key ?? "");
  expect(await stateOf(stage, job?.runId ?? "")).toBe("aborted");
  for (const line of ["/subagents cancel", "/subagents log", "/subagents frobnicate", "/subagents list x"]) {
    expect(await stage.give(line)).toContain("takes `list`, `cancel <id | all>` or `log <id>`");
  }
});

test("in a group only an owner and the person who started a sub-agent can cancel it", async () => {
  const play: SpawnPlay = (turn) =>
    turn.session.key === GROUP ? turn.tool("sessions_spawn", { task: "dig" }).then(() => "ok") : held(turn);
  const stage = await open({ play });
  const runId = await stage.says("telegram:7", "go", GROUP);
  await expect.poll(() => stateOf(stage, runId)).toBe("ok");
  const inGroup = { chatType: "group", sessionKey: GROUP } as const;
  expect(await stage.give("/subagents cancel all", { ...inGroup, id: "8" })).toContain(
    "Only an owner, or the person who started",
  );
  expect(await stage.give("/subagents cancel all", { ...inGroup, id: "7" })).toBe("Cancelled: 1 sub-agent.");
});

test("CW1: in a shared direct chat nobody can cancel another person's sub-agent", async () => {
  const play: SpawnPlay = (turn) =>
    turn.session.key === MAIN ? turn.tool("sessions_spawn", { task: "dig" }).then(() => "ok") : held(turn);
  const stage = await open({ play });
  const runId = await stage.says("telegram:9", "go");
  await expect.poll(() => stateOf(stage, runId)).toBe("ok");
  expect(await stage.give("/subagents cancel all", { id: "7" })).toContain(
    "Only an owner, or the person who started",
  );
  expect(await stage.give("/subagents cancel all", { id: "9" })).toBe("Cancelled: 1 sub-agent.");
  // An operator's run may be stopped by everybody who may write in this chat.
  const { runId: operators } = await stage.tell(MAIN, "go");
  await expect.poll(() => stateOf(stage, operators)).toBe("ok");
  expect(await stage.give("/subagents cancel all", { id: "7" })).toBe("Cancelled: 1 sub-agent.");
});

test("I9: /sessions shows a person no other person's chat, whatever the agent may see", async () => {
  const stage = await open({ settings: { tools: { visibility: "all" } } });
  const theirs = "agent:main:dm:telegram:8";
  await stage.store.transaction((tx) => insertSession(tx, sessionRow(theirs, { displayName: "Eve" })));
  await stage.says("telegram:7", "go", GROUP);
  expect(await stage.give("/sessions")).toMatch(/^- `main`: \w+, \w+$/);
  const inGroup = await stage.give("/sessions", { isOwner: true, sessionKey: GROUP, chatType: "group" });
  expect(inGroup).toMatch(new RegExp(`^- \`${GROUP}\`[^\\n]*$`));
  const owner = await stage.give("/sessions", { isOwner: true });
  for (const key of ["`main`", GROUP, theirs]) expect(owner).toContain(key);
});

test("MO1: in an answer, labels, names and texts of other people are shown without markup, and secrets are redacted", async () => {
  const stage = await open({ settings: { tools: { visibility: "agent" } } });
  const label = "**x** [click](http://evil.example) `@everyone`\u202Efdp.exe";
  const secret = "key sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
  await stage.store.transaction(async (tx) => {
    await insertSession(tx, sessionRow("agent:main:chat:11111111-1111-4111-8111-111111111111", { label }));
    await insertSession(
      tx,
      sessionRow("agent:main:chat:22222222-2222-4222-8222-222222222222", { label: secret }),
    );
    await updateSession(tx, MAIN, { label });
  });
  const seen = await stage.give("/sessions", { isOwner: true });
  const [, inCode] = /`(\*\*x\*\* [^`]*)`/.exec(seen) ?? [];
  expect(inCode).toContain("'@everyone'");
  expect(seen).not.toContain("\u202E");
  expect(seen).not.toContain("sk-ant-api03");
  expect(await stage.give("/status")).not.toContain("\u202E");
});

test("/status shows state, model, usage and unfinished work", async () => {
  const stage = await open({ play: held });
  const runId = await stage.says("telegram:7", "work");
  await running(stage, runId);
  await stage.says("telegram:7", "and more");
  const told = await stage.give("/status");
  expect(told).toContain("`main` is running");
  expect(told).toContain("Model `offline/rehearsal`, thinking `off`");
  expect(told).toContain("1 message waiting, 0 sub-agents at work");
});

test("/whoami shows the person's name in the settings, and /help lists only the commands that this person may use", async () => {
  const stage = await open();
  const told = await stage.give("/whoami");
  expect(told).toContain("`telegram:7`");
  expect(told).toContain("not an owner");
  expect(told).toContain("`agent:main:main`");
  expect(await stage.give("/whoami", { isOwner: true })).toContain("You are an owner.");
  const inGroup = { chatType: "group", sessionKey: GROUP } as const;
  expect(await stage.give("/help")).toContain("`/new`");
  expect(await stage.give("/help")).not.toContain("/send");
  expect(await stage.give("/help", inGroup)).not.toContain("`/new`");
  expect(await stage.give("/help", { ...inGroup, isOwner: true })).toContain("`/send on | off | inherit`");
  expect(await stage.give("/help model")).toMatch(/^`\/model \[name \| default\]`: /);
  expect(await stage.give("/frobnicate")).toMatch(/^There is no command `\/frobnicate`\. Send each command/);
});

test("CO1: if its transaction is rolled back, a command has no effect", async () => {
  const stage = await open({ play: held });
  const runId = await stage.says("telegram:7", "work");
  await running(stage, runId);
  const before = await stage.session(MAIN);
  const parts = { ...stage, checkModel: (name: string) => ok(name) };
  for (const line of ["/new", "/stop", "/model x", "/think high"]) {
    await expect(
      stage.engine.commit(async (unit) => {
        await performCommand(parts, unit, requestOf(line, {}));
        throw new Error("the disk is full");
      }),
    ).rejects.toThrow("the disk is full");
  }
  expect(await stage.session(MAIN)).toEqual(before);
  expect(await stateOf(stage, runId)).toBe("running");
});

test("before the first message, commands report that there is no session yet, but /whoami works", async () => {
  const stage = await open();
  const nowhere = { sessionKey: "agent:main:telegram:group:-5", chatType: "group" } as const;
  for (const line of ["/status", "/stop", "/think high", "/sessions"]) {
    expect(await stage.give(line, nowhere)).toContain("no conversation yet");
  }
  expect(await stage.give("/whoami", nowhere)).toContain("`telegram:7`");
  expect(await stage.session(nowhere.sessionKey)).toBeUndefined();
});

test("/compact queues a run that summarises the conversation; in groups it is for owners only", async () => {
  const stage = await open();
  expect(await stage.give("/compact now")).toBe("/compact takes no arguments; nothing was summarised.");
  expect(await stage.give("/compact", { sessionKey: GROUP, chatType: "group" })).toBe(
    "/compact is for owners only in a group.",
  );
  expect(await stage.give("/compact")).toBe("The older messages will be summarised. Nothing is deleted.");
  const [run] = await stage.runs(MAIN);
  expect(run).toMatchObject({ input: { text: "/compact", compact: true, guest: true } });
  await expect.poll(() => stateOf(stage, run?.runId ?? "")).toBe("ok");
});

test("/fork forks the conversation at its newest message, for owners only", async () => {
  const stage = await open();
  expect(await stage.give("/fork", { isOwner: true })).toBe("This conversation has no messages yet.");
  const runId = await stage.says("telegram:7", "hello");
  await expect.poll(() => stateOf(stage, runId)).toBe("ok");
  expect(await stage.give("/fork")).toBe("/fork is for owners only.");
  const told = await stage.give("/fork", { isOwner: true });
  expect(told).toMatch(/^Forked: `agent:main:main:fork:[0-9a-f-]{36}`\.$/);
  const fork = await stage.session(/`(.*)`/.exec(told)?.[1] ?? "");
  expect(fork).toMatchObject({ agentId: "main", kind: "other" });
  expect(fork?.lastRoute).toBeUndefined();
});

test("CW1: the same sender id on another channel is another person", async () => {
  const stage = await open({ play: held });
  const runId = await stage.says("discord:7", "work", GROUP);
  await running(stage, runId);
  const refused = await stage.give("/stop", { chatType: "group", sessionKey: GROUP, id: "7" });
  expect(refused).toContain("Only an owner, or the person who started");
  expect(await stateOf(stage, runId)).toBe("running");
});

test("CW1: in a direct chat /stop stops all runs except those that another person started", async () => {
  const stage = await open({ play: held });
  const theirs = await stage.says("telegram:9", "theirs");
  await running(stage, theirs);
  const operators = (await stage.tell(MAIN, "an operator's")).runId;
  expect(await stage.give("/stop", { id: "7" })).toBe("Stopped: 1 run that you began.");
  expect([await stateOf(stage, theirs), await stateOf(stage, operators)]).toEqual(["running", "aborted"]);
  expect(await stage.give("/stop", { id: "9" })).toBe("Stopped: 1 run.");
});
