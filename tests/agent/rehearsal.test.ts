// The offline model: the sentences that it understands, its tool calls, and its summaries of results.

import { expect, test } from "vitest";
import { openModelPort } from "../../src/agent/model/port.ts";
import { readSentence } from "../../src/agent/offline/sentences.ts";
import { optional } from "../../src/core/optional.ts";
import { joinPrompt, promptParts } from "../../src/core/rules/prompt/prompt.ts";
import { HEADING, messageContext, replyContext } from "../../src/core/rules/turn-rules.ts";
import type { ToolCallRequest } from "../../src/core/shapes/tool.ts";
import { type FakeWorld, fakeWorld } from "../kit/world.ts";
import { startTurn, toolSpec, userSays } from "./turn-kit.ts";

const NAMES = [
  "sessions_list",
  "sessions_history",
  "sessions_send",
  "sessions_search",
  "agents_list",
  "session_status",
  "read",
  "write",
  "exec",
  "cron",
];

interface Said {
  readonly text: string;
  readonly calls: ToolCallRequest[];
  readonly streamed: string[];
}

type Answers = (request: ToolCallRequest) => object;

interface Situation {
  readonly agentId?: string;
  readonly context?: string;
  readonly answers?: Answers;
  readonly tools?: readonly string[];
  readonly world?: FakeWorld;
  readonly thinkMs?: number;
}

async function say(sentence: string, situation: Situation = {}): Promise<Said> {
  const { agentId = "main", context, tools = NAMES, world = fakeWorld(), thinkMs = 0 } = situation;
  const calls: ToolCallRequest[] = [];
  const turn = startTurn({
    port: openModelPort(world, () => {}, thinkMs),
    entries: [userSays(sentence)],
    tools: tools.map((name) => toolSpec(name, { parallel: true })),
    callTool: async (request) => {
      calls.push(request);
      const json = situation.answers?.(request) ?? { status: "ok", reply: "fine" };
      return { text: JSON.stringify(json), isError: false };
    },
    more: {
      world,
      system: joinPrompt(
        promptParts({
          agentId,
          sessionKey: "main",
          workspace: "/w",
          toolNames: tools,
          ...optional({ context }),
        }),
      ),
    },
  });
  const end = await turn.end;
  if (end.kind !== "ok") throw new Error(JSON.stringify(end));
  return { text: end.text, calls, streamed: turn.texts };
}

const send = (key: string, message: string, timeoutSeconds = 30) => ({
  sessionKey: key,
  message,
  timeoutSeconds,
});

test.each([
  ["list sessions", "sessions_list", {}],
  ["Please list my sessions.", "sessions_list", {}],
  ["list agents", "agents_list", {}],
  ["status", "session_status", {}],
  ["status of research", "session_status", { sessionKey: "agent:research:main" }],
  ["search for blue whales", "sessions_search", { query: "blue whales" }],
  ["read research", "sessions_history", { sessionKey: "agent:research:main", limit: 10 }],
  ["read file notes/a.txt", "read", { path: "notes/a.txt" }],
  ["write file a.txt: one\ntwo", "write", { path: "a.txt", content: "one\ntwo" }],
  ["run: ls -l", "exec", { command: "ls -l" }],
  ["ask research: what is new?", "sessions_send", send("agent:research:main", "what is new?")],
  ["ask Research what is new?", "sessions_send", send("agent:research:main", "what is new?")],
  ["ask research within 2 seconds: hurry", "sessions_send", send("agent:research:main", "hurry", 2)],
  [
    "ask agent:research:main: ask main: hello",
    "sessions_send",
    send("agent:research:main", "ask main: hello"),
  ],
  ["tell research the build is green", "sessions_send", send("agent:research:main", "the build is green", 0)],
  ["relay to writer: ask research: hi", "sessions_send", send("agent:writer:main", "ask research: hi")],
  ['ask "My Team": hi', "sessions_send", { label: "My Team", message: "hi", timeoutSeconds: 30 }],
  ["ask main: hello", "sessions_send", send("main", "hello")],
  [
    "remind me in 1 minute to stretch",
    "cron",
    { action: "add", at: "in 1 minute", message: "say Reminder: stretch" },
  ],
  [
    "remind me every 2 hours to drink",
    "cron",
    { action: "add", every: "2 hours", message: "say Reminder: drink" },
  ],
  [
    "remind me tomorrow at 9:30 to call",
    "cron",
    { action: "add", at: "tomorrow at 9:30", message: "say Reminder: call" },
  ],
  ["list my reminders", "cron", { action: "list" }],
  ["remove reminder j1", "cron", { action: "remove", id: "j1" }],
])("the sentence %j calls %s", async (sentence, name, args) => {
  const { calls } = await say(sentence);
  expect(calls.map(({ name, arguments: made }) => ({ name, made }))).toEqual([{ name, made: args }]);
});

test("in a session of another agent, the name `main` means the agent `main`", async () => {
  const { calls } = await say("ask main: hello", { agentId: "research" });
  expect(calls[0]?.arguments).toMatchObject({ sessionKey: "agent:main:main" });
});

test("for a sentence that names several agents, the model sends to all of them in parallel", async () => {
  const { calls, text } = await say("ask research, writer and critic: hi");
  expect(calls.map((call) => call.arguments.sessionKey)).toEqual([
    "agent:research:main",
    "agent:writer:main",
    "agent:critic:main",
  ]);
  expect(text).toBe("research answered: fine\nwriter answered: fine\ncritic answered: fine");
});

test("if no agent has the name, the model looks for a session with that label and sends to it", async () => {
  const answers: Answers = (request) => {
    if (request.name === "sessions_list")
      return { sessions: [{ key: "agent:main:chat:1", label: "helper" }] };
    const isKey = request.arguments.sessionKey === "agent:main:chat:1";
    return isKey
      ? { status: "ok", reply: "here" }
      : { status: "forbidden", code: "not_visible", error: "no" };
  };
  const { text, calls } = await say("ask helper: hi", { answers });
  expect(calls).toHaveLength(3);
  expect(text).toBe("helper answered: here");
  const refused = await say("ask nobody: hi", { answers });
  expect(refused.text).toContain("refused (not_visible): no");
});

test.each([
  [{ status: "ok", reply: "" }, "had nothing to say"],
  [{ status: "accepted", runId: "r1" }, "not waiting"],
  [
    { status: "timeout", runId: "r1", error: "waiting ended", state: "queued" },
    "waiting ended (run r1, queued)",
  ],
  [{ status: "error", code: "run_failed", error: "it broke" }, "(run_failed): it broke"],
  [{ status: "forbidden", code: "wait_cycle", error: "would wait for itself", hint: "Use 0." }, "Use 0."],
])("the model describes the send result %j in words", async (json, expected) => {
  expect((await say("ask research: hi", { answers: () => json })).text).toContain(expected);
});

test("a sentence with a waiting time delays the next step by this time", async () => {
  const world = fakeWorld();
  const said = say("wait 3 seconds, then say done", { world });
  expect(await world.timerWithin(10_000)).toBe(3_000);
  await world.advance(3_000);
  expect((await said).text).toBe("done");
  const asking = say("wait 2s, then ask research: hi", { world });
  await world.timerWithin(10_000);
  await world.advance(2_000);
  expect((await asking).text).toBe("research answered: fine");
});

const requester = { key: "agent:main:main", channel: "webchat" };
const self = { key: "main", channel: "webchat" };

test("a request of another session is executed, and a question of another session is answered", async () => {
  const context = messageContext({ requester, self });
  const { calls } = await say("ask main: hello", { agentId: "research", context });
  expect(calls[0]?.arguments).toMatchObject({ sessionKey: "agent:main:main", message: "hello" });
  const answered = await say("What should we check before a release?", { agentId: "research", context });
  expect(answered.text).toContain("What should we check before a release");
  expect((await say("hello", { agentId: "research", context })).text).toBe("Hello from research.");
});

test("a conversation has one follow-up question and one answer, then it ends", async () => {
  const reply = (turn: number) => ({ context: replyContext({ self, other: requester, turn, turnsMax: 5 }) });
  const long = "I would start with the riskiest part of the plan and test that.";
  expect((await say(long, reply(2))).text).toContain("What would you check first");
  expect((await say("Thanks. What would you check first?", reply(3))).text).toContain(
    'On "What would you check first"',
  );
  expect((await say(long, reply(4))).text).toBe("REPLY_SKIP");
  expect((await say("done", reply(2))).text).toBe("REPLY_SKIP");
  expect((await say("ask main: hello", reply(2))).calls).toEqual([]);
});

test("O3: a heading inside a message is treated as normal text", async () => {
  expect((await say(`${HEADING.reply}\nlist sessions`)).text).toContain("offline rehearsal model");
  expect((await say(`say ${HEADING.announce}`)).text).toBe(HEADING.announce);
});

test("H2: no text makes the offline model slow, whatever the length or form", () => {
  const many = 250_000;
  for (const text of [
    `ask a${" ".repeat(many)}x`,
    `tell a${"\t".repeat(many)}x:`,
    `read a${"?".repeat(many)}b`,
    `ask ${"a within ".repeat(many / 9)}`,
    `status of ${'"'.repeat(many)}`,
  ]) {
    readSentence(text, "main");
  }
  const long = "x ".repeat(many).trim();
  expect(readSentence(`ask research within 5 s: ${long}`, "main")).toMatchObject({
    args: { message: long, timeoutSeconds: 5 },
  });
});
