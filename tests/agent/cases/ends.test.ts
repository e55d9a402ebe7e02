// Ends of answers: reasons that only one server has, missing marks, open connections and broken streams.

import { expect, test } from "vitest";
import { textOf } from "../../../src/core/shapes/message.ts";
import {
  calling,
  callPiece,
  DONE,
  delta,
  named,
  openRaw,
  type RawReply,
  saying,
  stream,
} from "../../kit/dialects/raw.ts";
import { fakeWorld } from "../../kit/world.ts";
import { agentSettings } from "../../tools/app.ts";

const HELLO = delta({ content: "an answer" });
const WHOLE = { status: "ok", text: "an answer", error: "" };

async function say(reply: RawReply, options: Parameters<typeof openRaw>[0] = {}) {
  const talk = await (await openRaw(options)).talk("m", () => reply);
  return talk.says("go");
}

test.each([
  "eos",
  "eos_token",
  "end_turn",
  "stop_sequence",
  "tool_use",
  "STOP",
  "other",
  "COMPLETE",
  "stop_str",
])("a whole text with the finish reason %s is the answer", async (reason) => {
  expect(await say(stream(HELLO, delta({}, reason), DONE))).toEqual(WHOLE);
});

test.each(["tool_use", "stop", "TOOL_CALL", "eos", "function_call"])(
  "calls with the finish reason %s run",
  async (reason) => {
    const house = await openRaw();
    const calls = stream(calling(callPiece(0, "a1", '{"limit":1}')), delta({}, reason), DONE);
    const talk = await house.talk("m", (_, at) => (at === 0 ? calls : saying("done")));
    expect(await talk.says("go")).toEqual({ status: "ok", text: "done", error: "" });
    expect(talk.requests[1]?.toolResults).toHaveLength(1);
  },
);

test.each(["max_tokens", "MAX_TOKENS", "length"])(
  "a text with the finish reason %s was cut, and is continued",
  async (reason) => {
    const house = await openRaw();
    const cut = stream(delta({ content: "one half" }), delta({}, reason), DONE);
    const talk = await house.talk("m", (_, at) => (at === 0 ? cut : saying(" and the other")));
    const { status, text } = await talk.says("go");
    expect({ status, requests: talk.requests.length }).toEqual({ status: "ok", requests: 2 });
    expect(text).toMatch(/one half[\s\S]*and the other/);
  },
);

test("[DONE] without a finish reason ends a whole answer", async () => {
  expect(await say(stream(HELLO, DONE))).toEqual(WHOLE);
});

test("a finish reason without [DONE] ends a whole answer", async () => {
  expect(await say(stream(HELLO, delta({}, "stop")))).toEqual(WHOLE);
});

const OPEN: Record<string, readonly ["openai-completions" | "anthropic-messages", string[]]> = {
  "a finish reason": ["openai-completions", [HELLO, delta({}, "stop")]],
  "[DONE]": ["openai-completions", [HELLO, delta({}, "stop"), DONE]],
  "Anthropic's stop reason": [
    "anthropic-messages",
    [
      named("message_start", { message: { role: "assistant", content: [], usage: { input_tokens: 1 } } }),
      named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
      named("content_block_delta", { index: 0, delta: { type: "text_delta", text: "an answer" } }),
      named("content_block_stop", { index: 0 }),
      named("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }),
    ],
  ],
};

test.each(Object.entries(OPEN))(
  "a connection that stays open behind %s ends the answer within two seconds",
  async (_, [api, pieces]) => {
    const world = fakeWorld();
    const talk = await (await openRaw({ api, world })).talk("m", () => ({ pieces, isOpen: true }));
    let isOver = false;
    const said = talk.says("go").finally(() => {
      isOver = true;
    });
    let passedMs = 0;
    while (!isOver && passedMs <= 2_000) {
      const due = await Promise.race([world.timerWithin(2_000 - passedMs), said.then(() => undefined)]);
      if (due === undefined) break;
      await world.advance(due);
      passedMs += due;
    }
    expect(await said).toEqual(WHOLE);
    expect(passedMs).toBeLessThanOrEqual(2_000);
  },
  20_000,
);

const HALF = [delta({ content: "the first half " }), delta({ content: "of a text" })];

test.each([
  ["breaks", { pieces: HALF, isBroken: true }],
  ["ends without a reason", { pieces: HALF }],
  ["reports an error", { pieces: [...HALF, `data: {"error":{"message":"the GPU is gone"}}\n\n`] }],
])("a stream that %s keeps its text, and the sender gets it with the error", async (_, reply) => {
  const { status, text, error } = await say(reply);
  expect(status).toBe("error");
  expect(text).toContain("the first half of a text");
  expect(error).not.toMatch(/[{}<>]/);
});

test("a session that sends to another one gets the text of a broken stream with the error", async () => {
  const agents = [agentSettings("research", { model: "local/broken" })];
  const house = await openRaw({ models: ["m", "broken"], agents });
  house.script("broken", () => ({ pieces: HALF, isBroken: true }));
  const given = { sessionKey: "agent:research:main", message: "find it", timeoutSeconds: 30 };
  const send = {
    index: 0,
    id: "a1",
    type: "function",
    function: { name: "sessions_send", arguments: JSON.stringify(given) },
  };
  const talk = await house.talk("m", (_, at) =>
    at === 0 ? stream(delta({ tool_calls: [send] }), delta({}, "tool_calls"), DONE) : saying("done"),
  );
  expect((await talk.says("go")).text).toBe("done");
  const results = (await talk.history()).flatMap((one) => (one.role === "toolResult" ? [textOf(one)] : []));
  expect(results.join()).toContain("the first half of a text");
});
