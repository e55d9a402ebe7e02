// A whole gateway between a model server and a chat: which text people, senders and requesters get from a run.

import { expect, test } from "vitest";
import { openApp } from "../../../src/app.ts";
import type { TelegramAccount } from "../../../src/features/telegram/telegram.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import type { ServedRequest } from "../../kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../../kit/model-server/server.ts";
import { call, cut, stop, text, thinking } from "../../kit/model-server/steps.ts";
import { startTelegram } from "../../kit/platforms/telegram/server.ts";
import type { Json } from "../../kit/platforms/telegram/state.ts";
import { agentSettings, settingsWith } from "../../tools/app.ts";
import { ADA, account, DIRECT, GROUP, TOKEN, USERNAME } from "./ground.ts";

const CUT = "The answer was cut at the output limit.";

/** Answers of the agents, by the agent's id. Each request takes the next one. */
type Answers = Readonly<Record<string, readonly Answer[]>>;

async function openTalk(answers: Answers, more: Partial<TelegramAccount> = {}, fallback = false) {
  const served: ServedRequest[] = [];
  const counts = new Map<string, number>();
  const model = await startModelServer((request) => {
    const agent = request.model === "spare" ? "spare" : (request.agentId ?? "");
    served.push(request);
    const at = counts.get(agent) ?? 0;
    counts.set(agent, at + 1);
    return answers[agent]?.[at] ?? `unexpected request ${at} of ${agent}`;
  });
  cleanup(() => model.close());
  const server = await startTelegram();
  const bot = server.addBot(TOKEN, USERNAME);
  server.addChat({ id: DIRECT, type: "private" });
  server.addChat({ id: GROUP, type: "group" });
  const provider = model.provider("openai-completions");
  const [own] = provider.models;
  if (own === undefined) throw new Error("a model was expected");
  const ref = `${provider.id}/${own.id}`;
  const fallbackModels = fallback ? [`${provider.id}/spare`] : [];
  const settings = settingsWith({
    providers: [{ ...provider, models: [own, { ...own, id: "spare" }] }],
    agents: [
      agentSettings("main", { model: ref, fallbackModels, subagents: { allowAgents: ["research"] } }),
      agentSettings("research", { model: ref }),
    ],
    channels: [account(server.url, more)],
    tools: { agentToAgent: { enabled: true, allow: ["*"] }, visibility: "all" },
  });
  const opened = await openApp({
    settings: { ...settings, store: { dir: temporaryFolder(), durability: "normal" } },
    world: quietWorld(),
    version: "0.0.0-test",
    environment: {},
  });
  if (!opened.ok) throw new Error(opened.error);
  cleanup(() => opened.value.close(0));
  let id = 100;
  const direct: Json = { id: DIRECT, type: "private", first_name: "Ada" };
  const says = (words: string, chat: Json = direct, more: Json = {}): void => {
    id += 1;
    const mention = { type: "mention", offset: 0, length: USERNAME.length + 1 };
    const entities = words.startsWith("@") ? [mention] : [];
    server.push(bot, {
      message: { message_id: id, date: 1_790_000_000, chat, from: ADA, text: words, entities, ...more },
    });
  };
  /** Returns the texts that the chat has once no run and no delivery is unfinished. */
  const shown = async (): Promise<string[]> => {
    const { db } = opened.value.store;
    await expect
      .poll(async () => {
        const runs = await db.selectFrom("runs").select("state").execute();
        const due = await db.selectFrom("deliveries").select("id").where("state", "=", "pending").execute();
        return (
          runs.length > 0 &&
          due.length === 0 &&
          runs.every(({ state }) => !["queued", "running", "waiting"].includes(state))
        );
      })
      .toBe(true);
    return server.sent.map((sent) => sent.text);
  };
  return { app: opened.value, says, shown, served, db: opened.value.store.db };
}

const LIST = call("agents_list");

const EMPTY: readonly (readonly [string, Answer])[] = [
  ["nothing", [stop("stop")]],
  ["blanks", [text(" \n\n ")]],
  ["thinking only", [thinking("Let me think.")]],
  ["thinking in its text only", [text("<think>Let me think.</think>")]],
  ["tool markup only", [text('<tool_call>{"name": "agents_list"}</tool_call>')]],
];

test.each(EMPTY)("a model that answers with %s is asked again", async (_, empty) => {
  const { says, shown, served } = await openTalk({ main: [empty, "Hello Ada."] });
  says("hello");
  expect(await shown()).toEqual(["Hello Ada."]);
  expect(served).toHaveLength(2);
});

test.each(EMPTY)("a person reads a sentence if the model answers with %s twice", async (_, empty) => {
  const { says, shown, db } = await openTalk({ main: [empty, empty] });
  says("hello");
  const [sentence, ...rest] = await shown();
  expect(sentence).toBe("I could not finish this: openai/test-model answered without text twice");
  expect(rest).toEqual([]);
  expect(await db.selectFrom("runs").select(["state", "code"]).execute()).toEqual([
    { state: "error", code: "run_failed" },
  ]);
});

test("an empty answer after a tool call is asked for again without repeating the tool", async () => {
  const { says, shown, served } = await openTalk({ main: [[LIST], [thinking("Done.")], "Two agents."] });
  says("who is there?");
  expect(await shown()).toEqual(["Two agents."]);
  expect(served.map(({ toolResults }) => toolResults.length)).toEqual([0, 1, 1]);
});

test("a reply that the agent chose not to write is silence, in any form", async () => {
  const { says, shown, served } = await openTalk({
    main: ["**REPLY_SKIP**", "`no_reply`.", "Noted.\n\nHEARTBEAT_OK"],
  });
  says("one");
  expect(await shown()).toEqual([]);
  says("two");
  await expect.poll(() => served.length).toBe(2);
  expect(await shown()).toEqual([]);
  says("three");
  await expect.poll(() => served.length).toBe(3);
  expect(await shown()).toEqual(["Noted."]);
});

test.each([
  ["empty", [stop("stop")] as Answer, ["The answer is 42."]],
  ["blank", [text("  ")] as Answer, ["The answer is 42."]],
  ["another text", "Done." as Answer, ["The answer is 42.", "Done."]],
  ["silence", "NO_REPLY" as Answer, []],
])("a direct chat gets each text of a run once, if the last one is %s", async (_, last, texts) => {
  const { says, shown, served } = await openTalk({ main: [[text("The answer is 42."), LIST], last] });
  says("what is the answer?");
  expect(await shown()).toEqual(texts);
  expect(served).toHaveLength(2);
});

const GROUP_CHAT = { id: GROUP, type: "group", title: "Lunch" };

test.each([
  ["a group gets only the last text", {}, GROUP_CHAT, ["Done."]],
  ["a group gets all texts with steps: all", { steps: "all" }, GROUP_CHAT, ["The answer is 42.", "Done."]],
  ["a direct chat gets only the last text with steps: last", { steps: "last" }, undefined, ["Done."]],
] as const)("%s", async (_, more, chat, texts) => {
  const { says, shown } = await openTalk({ main: [[text("The answer is 42."), LIST], "Done."] }, more);
  says(`@${USERNAME} what is the answer?`, chat);
  expect(await shown()).toEqual(texts);
});

test("a failed stream keeps what was shown: the chat gets the text and the error", async () => {
  const { says, shown } = await openTalk({ main: [[text("Half an answer"), cut()]] });
  says("tell me");
  expect(await shown()).toEqual(["Half an answer", expect.stringMatching(/^I could not finish this: /)]);
});

test("an answer that was cut at the output limit is continued once, as one message", async () => {
  const { says, shown, served, db } = await openTalk({
    main: [[text("One, tw"), stop("length")], "o, three."],
  });
  says("count");
  expect(await shown()).toEqual(["One, two, three."]);
  expect(served[1]?.lastUserText).toContain("cut at the output limit");
  expect(await db.selectFrom("runs").select("reply").execute()).toEqual([{ reply: "One, two, three." }]);
  const entries = await db.selectFrom("messages").select("role").execute();
  expect(entries.map(({ role }) => role)).toEqual(["user", "assistant"]);
});

test("an answer that is cut again is marked", async () => {
  const again: Answer = [text("o, thr"), stop("length")];
  const { says, shown, served } = await openTalk({ main: [[text("One, tw"), stop("length")], again] });
  says("count");
  expect(await shown()).toEqual(["One, two, thr", CUT]);
  expect(served).toHaveLength(2);
});

test("a tool call that was cut at the output limit is not run, and the model may repeat it", async () => {
  const half = call("agents_list", '{"a": "b');
  const { says, shown, served } = await openTalk({ main: [[half, stop("length")], "I gave up."] });
  says("who is there?");
  expect(await shown()).toEqual(["I gave up."]);
  expect(served[1]?.toolResults[0]).toContain("reached the output limit");
});

const SEND = call("sessions_send", {
  sessionKey: "agent:research:main",
  message: "count",
  timeoutSeconds: 20,
});

test.each([
  [
    "text before a tool call",
    [[text("42."), LIST], [stop("stop")], "REPLY_SKIP"],
    { status: "ok", reply: "42." },
  ],
  [
    "no text",
    [[stop("stop")], [stop("stop")]],
    { status: "error", code: "run_failed", error: expect.stringContaining("answered without text") },
  ],
  [
    "a broken stream",
    [[text("Half"), cut()]],
    { status: "error", code: "run_failed", reply: "Half", error: expect.any(String) },
  ],
  [
    "a cut answer",
    [[text("One, "), stop("length")], [text("two"), stop("length")], "REPLY_SKIP"],
    { status: "ok", reply: "One, two", note: "the answer was cut at the output limit" },
  ],
  ["a token in bold", ["**reply_skip**"], { status: "ok", reply: "" }],
] as const)("a sender gets %s", async (_, research, result) => {
  const { says, shown, served } = await openTalk({ main: [[SEND], "Sent."], research });
  says("ask research");
  expect(await shown()).toEqual(["Sent."]);
  const sent = served.find(({ agentId, toolResults }) => agentId === "main" && toolResults.length > 0);
  expect(JSON.parse(sent?.toolResults[0] ?? "{}")).toMatchObject(result);
});

const SPAWN = call("sessions_spawn", { agentId: "research", task: "count" });

test.each([
  ["text before a tool call", [[text("42."), LIST], [stop("stop")], "ANNOUNCE_SKIP"], []],
  [
    "its last text",
    [[text("42."), LIST], [stop("stop")], [stop("stop")], [stop("stop")]],
    ["Status: ok", "Result: 42."],
  ],
  ["that there was no text", [[stop("stop")], [stop("stop")]], ["Status: error", "answered without text"]],
  [
    "that its answer was cut",
    [[text("One, "), stop("length")], [text("two"), stop("length")], "Result: One, two"],
    ["Status: ok", "Result: One, two", "Notes: the answer was cut at the output limit"],
  ],
] as const)("a sub-agent announces %s", async (_, research, lines) => {
  const { says, shown } = await openTalk({ main: [[SPAWN], "Started."], research });
  says("start research");
  const texts = await shown();
  const announced = texts.filter((one) => one !== "Started.");
  expect(announced).toHaveLength(lines.length === 0 ? 0 : 1);
  for (const line of lines) expect(announced[0]).toContain(line);
});

test("each part of a long answer ends with a whole emoji", async () => {
  const family = "👨‍👩‍👧‍👦";
  const { says, shown } = await openTalk({ main: [[text(family.repeat(700))]] });
  says("Who lives here?");
  const parts = await shown();
  expect(parts.map((part) => part.replaceAll(family, ""))).toEqual(["", ""]);
  expect(parts.join("")).toBe(family.repeat(700));
});

test("the model reads the address of a link under words", async () => {
  const { says, shown, served } = await openTalk({ main: ["Read."] });
  const link = { type: "text_link", offset: 5, length: 4, url: "https://example.org/page" };
  says("read this please", undefined, { entities: [link] });
  expect(await shown()).toEqual(["Read."]);
  expect(served[0]?.lastUserText).toContain("read [this](https://example.org/page) please");
});
