// Sub-agents that an ACP agent shows: as child sessions of the protocol, or by marks on the updates of its own
// session. The shapes were recorded from Claude Code (claude-agent-acp 0.101.0), Codex (codex-acp 2.6.0), Qwen
// Code 0.24.4 and Copilot 1.0.102.

import { expect, test } from "vitest";
import { textOf, toolCallsOf } from "../../../src/core/shapes/message.ts";
import { openStage, type Stage, until } from "./kit.ts";

type Json = Record<string, unknown>;
type Step = "hang" | "end" | { readonly from?: string; readonly update?: Json; readonly ask?: Json };

const CHILD = "a6c5cab4eb0b9e745";
const says = (text: string, more: Json = {}): Json => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
  ...more,
});
const news = (sessionId: string, more: Json): Step => ({
  update: { sessionUpdate: "subagent_update", sessionId, ...more },
});
const RUNNING = { state: { state: "running" } };
const IDLE = { state: { state: "idle", stopReason: "end_turn" } };
const begun = (sessionId = CHILD, more: Json = {}): Step =>
  news(sessionId, {
    ...{ title: "Look at notes", description: "general-purpose", capabilities: { cancel: {} } },
    ...{ ...RUNNING, ...more },
  });
const task = (from: string | undefined, recipientSessionId = CHILD): Step => ({
  ...(from === undefined ? {} : { from }),
  update: {
    ...{ sessionUpdate: "session_message", messageId: "toolu_1", senderSessionId: "$own" },
    ...{ recipientSessionId, content: [{ type: "text", text: "Read the notes." }] },
  },
});
const read = (sessionUpdate: string, more: Json): Json => ({
  ...{ sessionUpdate, toolCallId: "toolu_2", _meta: { claudeCode: { parentToolUseId: "toolu_1" } } },
  ...more,
});
const CLAUDE: readonly Step[] = [
  { update: says("I will ask.") },
  begun(),
  task(undefined),
  task(CHILD),
  { from: CHILD, update: says("Sub looks.", { messageId: "m1" }) },
  {
    from: CHILD,
    update: read("tool_call", { name: "Read", kind: "read", status: "pending", title: "Read notes.txt" }),
  },
  { from: CHILD, update: read("tool_call_update", { status: "completed", rawOutput: "forty-two" }) },
  { from: CHILD, update: says("Sub found ", { messageId: "m2" }) },
  { from: CHILD, update: says("forty-two.", { messageId: "m2" }) },
  news(CHILD, IDLE),
  {
    update: {
      ...{ sessionUpdate: "session_message", messageId: "toolu_1:reply", senderSessionId: CHILD },
      ...{ recipientSessionId: "$own", content: [{ type: "text", text: "Sub found forty-two." }] },
    },
  },
  { update: says("The notes say ") },
  { update: says("forty-two.") },
];
const WORK = "> Read the notes.\n\nSub looks.\n\n• Read notes.txt\n\nSub found forty-two.";
const ROW = 'subagent({"label":"Look at notes","role":"general-purpose"})';

/** Returns the transcript, one entry for each message but the prompts. */
async function lines(stage: Stage, sessionKey?: string): Promise<string[]> {
  return (await stage.messages(sessionKey)).flatMap((message) => {
    if (message.role === "user") return [];
    const calls = toolCallsOf(message).map((call) => `${call.name}(${JSON.stringify(call.arguments)})`);
    const by = message.role === "toolResult" ? `${message.toolName}${message.isError ? " failed" : ""}:` : "";
    return [[by, textOf(message), ...calls].filter(Boolean).join(" ")];
  });
}

const play = (steps: readonly Step[]): string => `play ${JSON.stringify(steps)}`;

test("SA1: the work of a child session is one call of the turn, and is not in the agent's answer", async () => {
  const stage = await openStage();
  expect(await stage.say(play(CLAUDE))).toBe("The notes say forty-two.");
  expect(await lines(stage)).toEqual([`I will ask. ${ROW}`, `subagent: ${WORK}`, "The notes say forty-two."]);
  const told = stage.agents.flatMap(({ stream, data }) => (stream === "tool" ? [data] : []));
  expect(told).toMatchObject([
    { phase: "start", name: "subagent", args: { label: "Look at notes" } },
    { phase: "result", name: "subagent", isError: false, result: WORK },
  ]);
  expect(JSON.stringify(stage.chats)).not.toContain("Sub found");
});

test("SA2: text of a sub-agent between the agent's own pieces is not in them, and holds nothing back", async () => {
  const stage = await openStage();
  const steps: Step[] = [
    begun(),
    { from: CHILD, update: says("Sub one. ") },
    { from: CHILD, update: read("tool_call", { title: "Read notes.txt", status: "pending" }) },
    { update: says("Mine ") },
    { from: CHILD, update: read("tool_call_update", { status: "completed" }) },
    { from: CHILD, update: says("Sub two.") },
    { update: says("only.") },
    news(CHILD, IDLE),
    { update: says("Done.") },
  ];
  expect(await stage.say(play(steps))).toBe("Done.");
  expect(await lines(stage)).toEqual([
    ROW,
    "subagent: Sub one. \n\n• Read notes.txt\n\n[It works in the background.]",
    `Mine only. ${ROW}`,
    "subagent: Sub two.",
    "Done.",
  ]);
});

test("SA3: a sub-agent that outlives its turn shows the rest of its work in the next one", async () => {
  const stage = await openStage();
  const state = { state: "idle", stopReason: "refusal" };
  const late: Step[] = [{ from: CHILD, update: says("late") }, news(CHILD, { state })];
  expect(await stage.say(play([begun(), { update: says("Soon.") }, "end", ...late]))).toBe("Soon.");
  await stage.logged("played 2");
  expect(await stage.say("say next")).toBe("next");
  expect(await lines(stage)).toEqual([
    ROW,
    "subagent: [It works in the background.]",
    "Soon.",
    ROW,
    "subagent failed: late\n\n[It stopped: refusal]",
    "next",
  ]);
});

test("a sub-agent of a sub-agent, one that fails, and one that is used again each have their name", async () => {
  const stage = await openStage();
  const inner = "inner";
  const error = { code: -32_000, message: "no credit" };
  const failed = news(inner, { state: { state: "idle", stopReason: "error", error } });
  const steps: Step[] = [
    begun(),
    { ...(news(inner, { title: "Deeper", ...RUNNING }) as object), from: CHILD },
    { from: inner, update: says("deep") },
    { ...(failed as object), from: CHILD },
    { ...(failed as object), from: CHILD },
    news(CHILD, IDLE),
    news(CHILD, RUNNING),
    { from: CHILD, update: says("again") },
    news(CHILD, IDLE),
    { update: says("Done.") },
  ];
  expect(await stage.say(play(steps))).toBe("Done.");
  expect(await lines(stage)).toEqual([
    ROW,
    "subagent:",
    'subagent({"label":"Look at notes › Deeper"})',
    "subagent failed: deep\n\n[It stopped: error: no credit]",
    ROW,
    "subagent: again",
    "Done.",
  ]);
});

test("SA1: updates of sessions that were not announced reach no session, and ended children make room for others", async () => {
  const stage = await openStage();
  await stage.say("say hello", "agent:other:main");
  const other = await stage.messages("agent:other:main");
  const strangers = ["agent:other:main", "invented", ""].flatMap((from): Step[] => [
    { from, update: says("forged") },
    { from, update: { sessionUpdate: "tool_call", toolCallId: "f", title: "forged", status: "pending" } },
    { ...(begun("below") as object), from },
  ]);
  const many = Array.from({ length: 230 }, (_, index) => `child-${index}`);
  const steps: Step[] = [
    ...strangers,
    { from: "below", update: says("forged") },
    begun("$own", { title: "itself" }),
    ...many.flatMap((id): Step[] => [begun(id), { from: id, update: says("x") }, news(id, IDLE)]),
    { update: says("Mine.") },
  ];
  expect(await stage.say(play(steps))).toBe("Mine.");
  const all = await lines(stage);
  expect(all.filter((line) => line === "subagent: x")).toHaveLength(230);
  expect(JSON.stringify(all)).not.toMatch(/forged|itself/);
  expect(await stage.messages("agent:other:main")).toEqual(other);
});

const change = (toolCallId: string, more: Json): Step => ({
  update: { sessionUpdate: "tool_call_update", toolCallId, ...more },
});
const result = (text: string) => [{ type: "content", content: { type: "text", text } }];
const OPTIONS = [
  { kind: "allow_once", name: "Yes", optionId: "yes" },
  { kind: "reject_once", name: "No", optionId: "no" },
];

test("SA1: a program has a limit of children that work, and text of a further one is not in the answer", async () => {
  const stage = await openStage();
  const working = Array.from({ length: 200 }, (_, index) => begun(`child-${index}`));
  const late: Step = {
    from: "late",
    ask: { toolCall: { toolCallId: "t1", title: "npm test" }, options: OPTIONS },
  };
  const nested = says("Sub.", { _meta: { parentToolCallId: "gone" } });
  const steps: Step[] = [
    ...[...working, begun("late"), late, { update: nested }],
    ...[news("child-7", IDLE), begun("late"), late, { update: says("Mine.") }],
  ];
  expect(await stage.say(play(steps))).toBe("Mine.");
  const asked = stage.log().filter((line) => line.startsWith("permission"));
  expect(asked).toEqual(["permission cancelled", "permission no"]);
  expect((await lines(stage)).filter((line) => line.startsWith("subagent: • npm test"))).toHaveLength(1);
});

test("SA2: a sub-agent that works holds back no finished calls of the agent, also if the turn is stopped", async () => {
  const stage = await openStage({ runtime: { permissions: "ask" } });
  const own = ["w1", "w2", "w3"].flatMap((toolCallId): Step[] => [
    {
      update: {
        sessionUpdate: "tool_call",
        toolCallId,
        title: toolCallId,
        kind: "edit",
        status: "in_progress",
      },
    },
    change(toolCallId, { status: "completed", content: result(toolCallId) }),
  ]);
  const ask = { toolCall: { toolCallId: "w4", title: "npm test", kind: "execute" }, options: OPTIONS };
  const runId = await stage.begin(play([begun(), ...own, begun("second"), { ask }]));
  const stored = () => lines(stage);
  await until(stored, (all) => all.includes("edit: w3") && all.some((line) => line.startsWith("execute(")));
  await stage.client.call("chat.abort", { sessionKey: "main", runId });
  expect(await stage.end(runId)).toMatchObject({ runStatus: "aborted" });
  expect((await stored()).filter((line) => line.startsWith("edit:"))).toEqual([
    "edit: w1",
    "edit: w2",
    "edit: w3",
  ]);
});

test("names of sub-agents are short, also below others, and a sub-agent without one is called so", async () => {
  const stage = await openStage();
  const long = { title: "t".repeat(1_000), description: "d".repeat(1_000) };
  const deep = Array.from(
    { length: 20 },
    (_, index): Step => ({
      ...(begun(`d${index}`, long) as object),
      ...(index === 0 ? {} : { from: `d${index - 1}` }),
    }),
  );
  expect(await stage.say(play([...deep, begun("none", { title: "" }), { update: says("Mine.") }]))).toBe(
    "Mine.",
  );
  const named = (await stage.messages()).flatMap((message) =>
    toolCallsOf(message).map((call) => call.arguments),
  );
  expect(named).toHaveLength(21);
  for (const { label, role } of named.slice(0, 20))
    expect([String(label).length, String(role)]).toEqual([200, "d".repeat(200)]);
  expect(named[20]).toMatchObject({ label: "a sub-agent" });
});

test("sessions, calls and messages with an id that is too long are ignored", async () => {
  const stage = await openStage();
  const long = "i".repeat(201);
  const call = { ...read("tool_call", { title: "forged", status: "pending" }), toolCallId: long };
  const steps: Step[] = [
    ...[begun(long), { from: long, update: says("forged") }, begun(), { from: CHILD, update: call }],
    ...[says("forged", { messageId: long }), says("good")].map((update): Step => ({ from: CHILD, update })),
    { update: says("forged", { _meta: { parentToolCallId: long } }) },
    ...[news(CHILD, IDLE), { update: says("Mine.") }],
  ];
  expect(await stage.say(play(steps))).toBe("Mine.");
  expect(await lines(stage)).toEqual([ROW, "subagent: good", "Mine."]);
});

test("a permission request of a sub-agent names it; of an unknown session it is refused", async () => {
  const stage = await openStage({ runtime: { permissions: "ask" } });
  const toolCall = {
    toolCallId: "t1",
    title: "npm test",
    kind: "execute",
    rawInput: { command: "npm test" },
  };
  const ask = { toolCall, options: OPTIONS };
  const steps: Step[] = [
    begun(),
    { from: "invented", ask },
    { from: CHILD, ask },
    news(CHILD, IDLE),
    { update: says("Done.") },
  ];
  const runId = await stage.begin(play(steps));
  const [open] = await until(
    async () => (await stage.client.request("permissions.list", {})).permissions,
    (list) => list.length > 0,
  );
  expect(open).toMatchObject({ title: "Look at notes: npm test" });
  expect(stage.log()).toContain("permission cancelled");
  await stage.client.call("permissions.answer", { id: open?.id, decision: "allow" });
  expect(await stage.end(runId)).toMatchObject({ status: "ok" });
  expect(stage.log()).toContain("permission yes");
  expect(await lines(stage)).toEqual([ROW, "subagent: • npm test", "Done."]);
});

test("a stopped turn ends its sub-agents' calls, and the next turn shows nothing of them", async () => {
  const stage = await openStage();
  const runId = await stage.begin(play([begun(), { from: CHILD, update: says("half") }, "hang"]));
  await stage.logged("waiting");
  await stage.client.call("chat.abort", { sessionKey: "main", runId });
  expect(await stage.end(runId)).toMatchObject({ runStatus: "aborted" });
  expect(await stage.say("say next")).toBe("next");
  const all = await lines(stage);
  expect(all.filter((line) => line === ROW)).toHaveLength(1);
  expect(all.at(-1)).toBe("next");
});

/** A sub-agent whose texts and calls have the id of the call that started it. */
const marked = (more: Json = {}) => ({
  _meta: { parentToolCallId: "t1", subagentType: "general-purpose", ...more },
});
const INPUT = { description: "Look at notes", prompt: "Read the notes.", subagent_type: "general-purpose" };
const QWEN: readonly Step[] = [
  { update: says("I will ask.") },
  {
    update: {
      ...{ sessionUpdate: "tool_call", toolCallId: "t1", status: "pending", title: "Agent", kind: "other" },
      ...{ rawInput: {}, _meta: { toolName: "agent" } },
    },
  },
  change("t1", { status: "in_progress", title: "Agent: Look at notes", rawInput: INPUT }),
  { update: says("Sub looks.", marked()) },
  { update: says("", marked({ usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10 } })) },
  change("t1", { status: "in_progress", content: result("ReadFile: notes.txt") }),
  {
    update: {
      ...{ sessionUpdate: "tool_call", toolCallId: "t2", status: "pending", title: "ReadFile: notes.txt" },
      ...{ kind: "read", ...marked({ provenance: "subagent" }) },
    },
  },
  change("t2", { status: "completed", content: result("forty-two"), ...marked() }),
  { update: says("Sub found forty-two.", marked()) },
  change("t1", { status: "completed", content: result("Sub found forty-two.") }),
  { update: says("The notes say forty-two.") },
];
const MARKED_WORK = "Sub looks.\n\n• ReadFile: notes.txt\n\nSub found forty-two.";

test("SA1: marked work of a sub-agent is in the result of the call that started it, not in the answer", async () => {
  const stage = await openStage();
  expect(await stage.say(play(QWEN))).toBe("The notes say forty-two.");
  expect(await lines(stage)).toEqual([
    `I will ask. other(${JSON.stringify(INPUT)})`,
    `other: ${MARKED_WORK}`,
    "The notes say forty-two.",
  ]);
  expect((await stage.messages()).at(-1)).toMatchObject({ usage: { totalTokens: 10 } });
  expect(JSON.stringify(stage.chats)).not.toContain("Sub found");
});

test("SA1: marked work after the end of that call is a call of its own", async () => {
  const stage = await openStage();
  const steps = [...QWEN.slice(0, 3), change("t1", { status: "completed", content: result("started") })];
  expect(await stage.say(play([...steps, ...QWEN.slice(3, 9), { update: says("Done.") }]))).toBe("Done.");
  expect(await lines(stage)).toEqual([
    `I will ask. other(${JSON.stringify(INPUT)})`,
    "other: started",
    'subagent({"label":"general-purpose"})',
    `subagent: ${MARKED_WORK}\n\n[It works in the background.]`,
    "Done.",
  ]);
});

const COPILOT = { ACP_NAME: "Copilot" };
const input = { description: "Look at notes", prompt: "Read the notes.", agent_type: "explore" };

test("SA1: text of Copilot's sub-agents, which has no mark, is not in its answer", async () => {
  const stage = await openStage({ env: COPILOT });
  const own = { _meta: { "github.com/copilot": { agentId: "ee41b0c6" } } };
  const steps: Step[] = [
    { update: says("I will ask.") },
    {
      update: {
        ...{ sessionUpdate: "tool_call", toolCallId: "t1", title: "Look at notes", kind: "other" },
        ...{ status: "pending", rawInput: input },
      },
    },
    { update: says("Sub ") },
    { update: says("looks.") },
    {
      update: {
        ...{ sessionUpdate: "tool_call", toolCallId: "t2", title: "Viewing notes.txt", kind: "read" },
        ...{ status: "pending", ...own },
      },
    },
    change("t2", { status: "completed", rawOutput: { content: "forty-two" }, ...own }),
    { update: says("Sub found forty-two.") },
    change("t1", { status: "completed", content: result("Sub found forty-two.") }),
    { update: says("The notes say forty-two.") },
  ];
  expect(await stage.say(play(steps))).toBe("The notes say forty-two.");
  expect(await lines(stage)).toEqual([
    `I will ask. other(${JSON.stringify(input)})`,
    "other: Sub looks.\n\n• Viewing notes.txt\n\nSub found forty-two.",
    "The notes say forty-two.",
  ]);
});

test.each([
  ["whose end never comes", []],
  ["whose end is too large", [change("t1", { status: "completed", rawOutput: "$large" })]],
])("Copilot's answer after a sub-agent's call %s is its answer", async (_, end: Step[]) => {
  const stage = await openStage({ env: COPILOT });
  const call = (toolCallId: string, more: Json): Step => ({
    update: {
      sessionUpdate: "tool_call",
      toolCallId,
      title: "Look",
      kind: "other",
      status: "pending",
      ...more,
    },
  });
  const own = { _meta: { "github.com/copilot": { agentId: "ee41b0c6" } } };
  const steps: Step[] = [
    ...[{ update: says("I will ask.") }, call("t1", { rawInput: input }), { update: says("Sub looks.") }],
    ...[call("t2", own), change("t2", { status: "completed", ...own }), ...end],
    ...[{ update: says("The notes say ") }, { update: says("forty-two.") }],
  ];
  expect(await stage.say(play(steps))).toBe("The notes say forty-two.");
  const all = await lines(stage);
  expect(all.at(-1)).toBe("The notes say forty-two.");
  expect(all.filter((line) => line.startsWith("other"))).toEqual([
    expect.stringMatching(
      end.length === 0 ? /^other failed: Sub looks\./ : /^other: Sub looks\..*\[too large/s,
    ),
  ]);
});

test("a message of a sub-agent that is too large is no call of the agent", async () => {
  const stage = await openStage();
  const call = read("tool_call", { title: "Read notes.txt", status: "pending" });
  const done = read("tool_call_update", { status: "completed", rawOutput: "$large" });
  const work = [call, done].map((update): Step => ({ from: CHILD, update }));
  expect(await stage.say(play([begun(), ...work, news(CHILD, IDLE), { update: says("Mine.") }]))).toBe(
    "Mine.",
  );
  expect(await lines(stage)).toEqual([ROW, "subagent: • Read notes.txt", "Mine."]);
});

test("a restarted program's replayed history shows no work again, and its sub-agents keep their names", async () => {
  const env = { ACP_LOAD: "1" };
  const before = await openStage({ env });
  expect(await before.say(play(CLAUDE))).toBe("The notes say forty-two.");
  const old = await lines(before);
  await before.stop();
  const stage = await openStage({ home: before.home, env });
  const steps: Step[] = [
    { from: CHILD, update: says("again") },
    news(CHILD, IDLE),
    { update: says("Done.") },
  ];
  expect(await stage.say(play(steps))).toBe("Done.");
  expect(stage.log().filter((line) => line.startsWith("load "))).toHaveLength(1);
  expect(await lines(stage)).toEqual([...old, ROW, "subagent: again", "Done."]);
});

test("Qwen's notes that a background sub-agent has ended are not in its answer", async () => {
  const stage = await openStage();
  const note = (source: string): Step => ({
    update: says('Background agent "general-purpose: Look at notes" completed.', { _meta: { source } }),
  });
  const answer = says(" I know more.", { _meta: { source: "background_notification_response" } });
  const notes = [note("background_task_completed"), note("background_notification")];
  const said = await stage.say(play([{ update: says("Soon.") }, ...notes, { update: answer }]));
  expect(said).toBe("Soon. I know more.");
});
