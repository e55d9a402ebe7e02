// The contract between a gateway and the servers of models: each capability is tried with each dialect,
// through the doors of the gateway. A capability throws if the dialect does not have it.

import assert from "node:assert/strict";
import { type Message, textOf } from "../../../src/core/shapes/message.ts";
import type { Dialect } from "./dialect.ts";
import type { DialectTalk, Ground } from "./ground.ts";
import { PIXEL, type Said } from "./house.ts";
import type { Reply } from "./server.ts";
import type { Speech, SpokenCall } from "./speech.ts";

export interface Capability {
  /** Name of the capability's own model. */
  readonly id: string;
  /** Head of the column in the documentation. */
  readonly title: string;
  /** The property as a fact. */
  readonly proves: string;
  /** False if servers of this dialect do not have it. */
  isFor(dialect: Dialect): boolean;
  /** Resolves with the number of refusals from which the gateway learned. */
  try(ground: Ground, dialect: Dialect): Promise<number>;
}

const HELLO = "Grüße from the model 🌱, at last.";
const list = (limit: number): SpokenCall => ({ name: "sessions_list", arguments: { limit } });

/** Checks that the gateway broke no rule twice, and returns how often it had to learn. */
function countLessons({ broken }: DialectTalk): number {
  assert.deepEqual(broken, [...new Set(broken)], "the gateway did not learn from a refusal");
  return broken.length;
}

function expectText({ status, text, error }: Said, wanted: string): void {
  assert.deepEqual({ status, text, error }, { status: "ok", text: wanted, error: "" });
}

const always =
  (speech: Speech): Reply =>
  () =>
    speech;

/** Answers with the calls, and with the results of the calls of this turn behind them. */
const calling =
  (calls: readonly SpokenCall[], more: Speech = {}): Reply =>
  ({ toolResults }) =>
    toolResults.length === 0 ? { ...more, calls } : { ...more, text: `${toolResults.length} results` };

/** Checks that each call ran with its own arguments. */
function expectRuns(messages: readonly Message[], limits: readonly number[]): void {
  const calls = messages.flatMap((one) =>
    one.role === "assistant" ? one.content.filter(({ type }) => type === "toolCall") : [],
  );
  assert.deepEqual(
    calls.map((one) => ("arguments" in one ? one.arguments : undefined)),
    limits.map((limit) => ({ limit })),
  );
  const results = messages.flatMap((one) => (one.role === "toolResult" ? [one] : []));
  assert.equal(results.length, limits.length);
  for (const result of results) assert.equal(result.isError, false, textOf(result));
}

async function callTools(ground: Ground, dialect: Dialect, id: string, limits: readonly number[]) {
  const talk = await ground.talk(dialect, id, calling(limits.map(list)));
  expectText(await talk.says("How many?"), `${limits.length} results`);
  expectRuns(await talk.history(), limits);
  return talk;
}

const isSummary = (system: string): boolean => system.startsWith("You condense");
const OLD = "an old message";
/** Number of old messages that are too many for the model. */
const OLD_MESSAGES = 6;

const BASIC: readonly Capability[] = [
  {
    ...{ id: "text", title: "text", proves: "a streamed text is the answer", isFor: () => true },
    async try(ground, dialect) {
      const talk = await ground.talk(dialect, "text", always({ text: HELLO }));
      expectText(await talk.says("Hello"), HELLO);
      expectText(await talk.says("Hello again"), HELLO);
      return countLessons(talk);
    },
  },
  {
    ...{ id: "call", title: "tool call", proves: "a call runs with its arguments, and its result goes back" },
    isFor: ({ can }) => can.call,
    try: async (ground, dialect) => countLessons(await callTools(ground, dialect, "call", [1])),
  },
  {
    ...{ id: "parallel", title: "parallel calls", proves: "two calls of one answer stay apart" },
    isFor: ({ can }) => can.call,
    try: async (ground, dialect) => countLessons(await callTools(ground, dialect, "parallel", [1, 2])),
  },
  {
    ...{ id: "turns", title: "next turn", proves: "a turn after calls and results is answered" },
    isFor: ({ can }) => can.call,
    async try(ground, dialect) {
      const talk = await callTools(ground, dialect, "turns", [1, 2]);
      expectText(await talk.says("And now?"), "2 results");
      expectRuns(await talk.history(), [1, 2, 1, 2]);
      return countLessons(talk);
    },
  },
  {
    ...{
      id: "thinking",
      title: "thinking",
      proves: "thinking is kept apart from the text, over calls and turns",
    },
    isFor: ({ can }) => can.think && can.call,
    async try(ground, dialect) {
      const reply = calling([list(1)], { thinking: "Let me see." });
      const talk = await ground.talk(dialect, "thinking", reply, "medium");
      expectText(await talk.says("How many?"), "1 results");
      expectText(await talk.says("And now?"), "1 results");
      const thoughts = (await talk.history()).flatMap((one) =>
        one.role === "assistant" ? one.content.filter(({ type }) => type === "thinking") : [],
      );
      const isHidden = dialect.style?.thinking === "hidden";
      assert.ok(isHidden || JSON.stringify(thoughts).includes("Let me see."), "no thinking is shown");
      return countLessons(talk);
    },
  },
  {
    ...{
      id: "picture",
      title: "pictures",
      proves: "a picture reaches the model, also when it is in the history",
    },
    isFor: ({ can }) => can.see,
    async try(ground, dialect) {
      const talk = await ground.talk(dialect, "picture", always({ text: "A dot." }));
      expectText(await talk.says("Look", PIXEL), "A dot.");
      expectText(await talk.says("And now?"), "A dot.");
      for (const { body } of talk.requests)
        assert.ok(JSON.stringify(body).includes(PIXEL), "no picture is sent");
      return countLessons(talk);
    },
  },
];

const ENDS: readonly Capability[] = [
  {
    ...{
      id: "empty",
      title: "empty answer",
      proves: "an empty answer is asked for again",
      isFor: () => true,
    },
    async try(ground, dialect) {
      const talk = await ground.talk(dialect, "empty", (_, at) => (at === 0 ? {} : { text: HELLO }));
      expectText(await talk.says("Hello"), HELLO);
      assert.equal(talk.requests.length, 2);
      return countLessons(talk);
    },
  },
  {
    ...{ id: "silent", title: "always empty", proves: "a model that stays silent is told in a sentence" },
    isFor: () => true,
    async try(ground, dialect) {
      const talk = await ground.talk(dialect, "silent", always({}));
      const { text, error } = await talk.says("Hello");
      assert.match(text + error, /\w+ \w+ \w+/, "nobody is told that the answer is empty");
      assert.equal(talk.requests.length, 2);
      return countLessons(talk);
    },
  },
  {
    ...{ id: "length", title: "cut at length", proves: "a text that was cut at the limit is continued once" },
    isFor: () => true,
    async try(ground, dialect) {
      const reply: Reply = (_, at) =>
        at === 0 ? { text: "The first half", end: "length" } : { text: " and the second." };
      const talk = await ground.talk(dialect, "length", reply);
      const { status, text } = await talk.says("Tell me all");
      assert.deepEqual({ status, requests: talk.requests.length }, { status: "ok", requests: 2 });
      assert.match(text, /The first half[\s\S]*and the second\./);
      return countLessons(talk);
    },
  },
  {
    ...{ id: "endless", title: "no end mark", proves: "an answer whose stream is not ended is the answer" },
    isFor: () => true,
    async try(ground, dialect) {
      const talk = await ground.talk(dialect, "endless", always({ text: HELLO, form: "endless" }));
      expectText(await talk.says("Hello"), HELLO);
      return countLessons(talk);
    },
  },
  {
    ...{
      id: "json",
      title: "JSON, no stream",
      proves: "one JSON document in place of a stream is the answer",
    },
    isFor: () => true,
    async try(ground, dialect) {
      const talk = await ground.talk(dialect, "json", always({ text: HELLO, form: "json" }));
      expectText(await talk.says("Hello"), HELLO);
      return countLessons(talk);
    },
  },
];

const REFUSALS: readonly Capability[] = [
  {
    ...{
      id: "refusal",
      title: "refusal",
      proves: "a refusal is told in the words of the server",
      isFor: () => true,
    },
    async try(ground, dialect) {
      const talk = await ground.talk(dialect, "refusal", () => dialect.refusal);
      const { status, error } = await talk.says("Hello");
      assert.equal(status, "error");
      assert.ok(error.includes(dialect.refusal.words), error);
      assert.doesNotMatch(error, /[{}<>]|"message"|\\n|\\"/, "the error is not plain");
      return countLessons(talk);
    },
  },
  {
    ...{ id: "overflow", title: "overflow", proves: "a prompt that is too long is compacted, then answered" },
    isFor: () => true,
    async try(ground, dialect) {
      const talk = await ground.talk(dialect, "overflow", ({ system, messages, lastUserText }) => {
        if (isSummary(system) || lastUserText.includes(OLD)) return { text: "They said something old." };
        const old = messages.filter(({ texts }) => texts.some((text) => text.includes(OLD)));
        return old.length >= OLD_MESSAGES ? dialect.overflow : { text: HELLO };
      });
      for (let at = 0; at < OLD_MESSAGES; at += 1) await talk.says(`${OLD} ${at} ${"x ".repeat(200)}`);
      expectText(await talk.says("And now?"), HELLO);
      expectText(await talk.says("And then?"), HELLO);
      return countLessons(talk);
    },
  },
];

export const CAPABILITIES: readonly Capability[] = [...BASIC, ...ENDS, ...REFUSALS];
