// Our clients parse a stream as pi-ai does, wherever it is split into chunks. A hostile stream ends within
// limits.

import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UNREADABLE_ARGUMENTS } from "../../src/agent/model/model.ts";
import { dice } from "../kit/dice.ts";
import { STREAMS } from "./client-streams.ts";
import {
  type Answers,
  CLIENTS,
  made,
  modelOf,
  providerAt,
  type RawServer,
  rawServer,
  requestFor,
  seenOf,
  streaming,
  WIRE_APIS,
  type WireApi,
} from "./clients-kit.ts";

let server: RawServer;
beforeAll(async () => {
  server = await rawServer(streaming(""));
});
afterAll(() => server.close());

const SMALL = { maxAnswerBytes: 20_000, maxAnswerToolCalls: 4 };

function requestTo(api: WireApi, limits?: typeof SMALL) {
  const request = requestFor(modelOf(providerAt(`${server.url}/v1`, api)));
  return limits === undefined ? request : { ...request, limits };
}

async function both(api: WireApi, answer: Answers, limits?: typeof SMALL) {
  server.answer(answer);
  const ours = await made(CLIENTS[api].ours, requestTo(api, limits));
  const pi = await made(CLIENTS[api].pi, requestTo(api, limits));
  return { ours, pi };
}

/** Splits the bytes of a text at random places. */
function cutUp(text: string, seed: string): Uint8Array[] {
  const bytes = Buffer.from(text);
  const roll = dice(seed);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + roll.below(roll.of([1, 4, 40, 400]));
    parts.push(bytes.subarray(at, at + size));
    at += size;
  }
  return parts;
}

describe.each(WIRE_APIS)("%s", (api) => {
  test("the texts of one read are reported together, once", async () => {
    const { ours, pi } = await both(api, streaming(STREAMS[api].text ?? ""));
    expect(ours).toMatchObject({ text: pi.text, reports: 1 });
    expect(pi.reports).toBeGreaterThan(1);
  });

  test("after the first words, the texts of several packets are reported together", async () => {
    const packets = (STREAMS[api].text ?? "").split(/(?<=\n\n)/);
    const { ours, pi } = await both(api, streaming(...packets));
    expect(ours.text).toBe(pi.text);
    expect(pi.reports).toBeGreaterThan(2);
    // The clock stands still, so only the end of the answer causes a second report.
    expect(ours.reports).toBeLessThanOrEqual(2);
  });

  test.each(Object.entries(STREAMS[api]))("%s: both clients return the same answer", async (_, text) => {
    const { ours, pi } = await both(api, streaming(text));
    expect(seenOf(ours)).toEqual(seenOf(pi));
  });

  test.each(Object.entries(STREAMS[api]))(
    "%s: our client returns the same answer, wherever the stream is split",
    async (name, text) => {
      const whole = await both(api, streaming(text));
      for (const seed of ["cut-1", "cut-2", "cut-3"]) {
        server.answer(streaming(...cutUp(text, `${seed} ${name}`)));
        const cut = await made(CLIENTS[api].ours, requestTo(api));
        expect({ seed, seen: seenOf(cut) }).toEqual({ seed, seen: seenOf(whole.ours) });
      }
    },
  );

  test("if a connection breaks before the headers, both clients return the same error", async () => {
    const { ours, pi } = await both(api, (response) => response.destroy());
    expect(seenOf(ours)).toEqual(seenOf(pi));
  });

  const begun = STREAMS[api].text?.slice(0, -200) ?? "";
  test("if a connection breaks inside an event, both clients keep the text before it", async () => {
    const { ours, pi } = await both(api, async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      await new Promise<void>((resolve) => response.write(begun, () => setImmediate(resolve)));
      response.destroy();
    });
    expect(seenOf(ours)).toEqual(seenOf(pi));
    expect(ours.outcome).toHaveProperty("partial.content", [
      { type: "text", text: expect.stringMatching(/./) },
    ]);
  });

  test("the last event is read even if no empty line follows it", async () => {
    server.answer(streaming((STREAMS[api].text ?? "").trimEnd()));
    expect((await made(CLIENTS[api].ours, requestTo(api))).outcome.kind).toBe("message");
  });

  test("a connection is reused after a complete answer", async () => {
    const own = await rawServer(streaming(STREAMS[api].text ?? ""));
    try {
      const request = requestFor(modelOf(providerAt(`${own.url}/v1`, api)));
      for (let round = 0; round < 20; round += 1)
        expect((await made(CLIENTS[api].ours, request)).outcome.kind).toBe("message");
      // A connection may become free shortly after the next request began, so more than one is used.
      expect(own.connections.size).toBeLessThan(10);
    } finally {
      await own.close();
    }
  });
});

/**
 * Writes pieces until the client disconnects. `most`: maximum number of bytes, for a client that never
 * disconnects.
 */
function endless(first: string, pieceAt: (at: number) => string, most = 16 * 1024 * 1024): Answers {
  return async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(first);
    const closed = once(response, "close");
    for (let bytes = 0, at = 0; bytes < most && !response.destroyed; at += 1) {
      const piece = pieceAt(at);
      bytes += piece.length;
      if (response.write(piece)) continue;
      await Promise.race([once(response, "drain"), closed]);
    }
    response.end();
  };
}

const FILL = "x".repeat(8_000);
const HOSTILE: readonly (readonly [string, Answers])[] = [
  ["an event that never ends", endless("data: ", () => FILL)],
  ["one line of no field that never ends", endless("", () => FILL)],
  ["comments without end", endless("", () => `: ${FILL}\n\n`)],
  ["empty lines without end", endless("", () => "\n".repeat(8_000))],
  ["events without data, without end", endless("", () => `event: ping\n\n`.repeat(500))],
  ["lines of data without end", endless("", () => `data: x\n`.repeat(1_000))],
];

const openAi = (delta: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
const anthropic = (type: string, more: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const openBlock = (content_block: object): string =>
  anthropic("content_block_start", { index: 0, content_block });
const blockDelta = (delta: object): string => anthropic("content_block_delta", { index: 0, delta });

/** Returns events of one block: its beginning, then the same piece again and again. */
const piecesIn =
  (block: object, delta: object, before = "") =>
  (at: number): string =>
    (at === 0 ? openBlock(block) : "") + before + blockDelta(delta);
const COMMENT = `: ${FILL}\n\n`;
const countOf = (at: number) => ({ usage: { completion_tokens: at, output_tokens: at } });

/** Events that add nothing, or almost nothing, that a person could read. */
const EMPTY: Record<WireApi, readonly (readonly [string, (at: number) => string])[]> = {
  "openai-completions": [
    ["empty texts", () => openAi({ content: "" })],
    ["single letters behind long comments", () => COMMENT + openAi({ content: "x" })],
    ["empty pieces of a tool call", () => openAi({ tool_calls: [{ index: 0, function: {} }] })],
    ["ids of one tool call", (at) => openAi({ tool_calls: [{ index: 0, id: `c${at}` }] })],
    ["places of one tool call", (index) => openAi({ tool_calls: [{ index, id: "c" }] })],
    ["token counts", (at) => `data: ${JSON.stringify({ choices: [], ...countOf(at) })}\n\n`],
  ],
  "anthropic-messages": [
    ["blocks of hidden thinking", () => openBlock({ type: "redacted_thinking", data: FILL })],
    ["blocks of hidden thinking without data", () => openBlock({ type: "redacted_thinking" })],
    ["blocks of thinking with only a signature", () => openBlock({ type: "thinking", signature: "s" })],
    ["empty blocks of text", () => openBlock({ type: "text", text: "" })],
    ["empty texts", piecesIn({ type: "text" }, { type: "text_delta", text: "" })],
    [
      "single letters behind long comments",
      piecesIn({ type: "text" }, { type: "text_delta", text: "x" }, COMMENT),
    ],
    ["empty signatures", piecesIn({ type: "thinking" }, { type: "signature_delta", signature: "" })],
    [
      "empty pieces of a tool call",
      piecesIn({ type: "tool_use", id: "c" }, { type: "input_json_delta", partial_json: "" }),
    ],
    ["token counts", (at) => anthropic("message_delta", { delta: {}, ...countOf(at) })],
  ],
};

describe.each(WIRE_APIS)("%s: a hostile stream", (api) => {
  test.each(EMPTY[api])(
    "%s, repeated without end, end the model call with a clear error code",
    async (_, piece) => {
      const batch = (at: number) => Array.from({ length: 100 }, (_, more) => piece(at * 100 + more)).join("");
      const end = { kind: "too large", error: expect.stringContaining("maxAnswerBytes") };
      const { ours, pi } = await both(api, endless("", batch), SMALL);
      expect([ours.outcome, pi.outcome]).toEqual([
        expect.objectContaining(end),
        expect.objectContaining(end),
      ]);
    },
  );

  test.each(HOSTILE)("%s ends the model call with a clear error code", async (_, answer) => {
    server.answer(answer);
    const { outcome } = await made(CLIENTS[api].ours, requestTo(api, SMALL));
    expect(outcome).toMatchObject({ kind: "too large", error: expect.stringContaining("maxAnswerBytes") });
  });

  test.each(["huge arguments", "many calls", "many calls in one event", "huge thinking"] as const)(
    "%s end the model call with a clear error code, and no tool is called",
    async (kind) => {
      server.answer(streaming(flood(api, kind)));
      const { outcome } = await made(CLIENTS[api].ours, requestTo(api, SMALL));
      expect(outcome).toMatchObject({ kind: "too large" });
      expect(outcome).not.toHaveProperty("partial");
    },
  );

  test("tool arguments in many small pieces are parsed once; if they are not an object, they stay text", async () => {
    const pieces = Array.from({ length: 5_000 }, (_, at) => `"k${at}":1,`);
    const limits = { maxAnswerBytes: 1_000_000, maxAnswerToolCalls: 4 };
    server.answer(streaming(callOf(api, ["{", ...pieces, '"last":1}'])));
    const whole = await made(CLIENTS[api].ours, requestTo(api, limits));
    const args = whole.outcome.kind === "message" ? whole.outcome.message.content[0] : undefined;
    expect(Object.keys((args as { arguments: object }).arguments)).toHaveLength(5_001);
    server.answer(streaming(callOf(api, ["{", ...pieces])));
    const broken = await made(CLIENTS[api].ours, requestTo(api, limits));
    expect(broken.outcome).toHaveProperty(`message.content.0.arguments.${UNREADABLE_ARGUMENTS}`);
  });
});

const END: Record<WireApi, string> = {
  "openai-completions": 'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n',
  "anthropic-messages":
    anthropic("message_delta", { delta: { stop_reason: "tool_use" }, usage: {} }) +
    anthropic("message_stop", {}),
};

function callOf(api: WireApi, pieces: readonly string[], index = 0): string {
  if (api === "openai-completions") {
    const open = { index, id: `c${index}`, function: { name: "echo", arguments: "" } };
    const written = pieces.map((piece) =>
      openAi({ tool_calls: [{ index, function: { arguments: piece } }] }),
    );
    return openAi({ tool_calls: [open] }) + written.join("") + END[api];
  }
  const content_block = { type: "tool_use", id: `c${index}`, name: "echo", input: {} };
  const written = pieces.map((partial_json) =>
    anthropic("content_block_delta", { index, delta: { type: "input_json_delta", partial_json } }),
  );
  return anthropic("content_block_start", { index, content_block }) + written.join("") + END[api];
}

function flood(api: WireApi, kind: string): string {
  const isOpenAi = api === "openai-completions";
  if (kind === "huge arguments")
    return callOf(
      api,
      Array.from({ length: 10 }, () => FILL),
    );
  if (kind === "huge thinking") {
    if (isOpenAi) return openAi({ reasoning_content: FILL }).repeat(10);
    const delta = { type: "thinking_delta", thinking: FILL };
    return openBlock({ type: "thinking", thinking: "", signature: "" }) + blockDelta(delta).repeat(10);
  }
  const calls = Array.from({ length: 5_000 }, (_, index) => ({
    index,
    id: `c${index}`,
    function: { name: "e" },
  }));
  if (isOpenAi && kind === "many calls in one event") return openAi({ tool_calls: calls });
  return calls.map(({ index }) => callOf(api, ["{}"], index).replace(END[api], "")).join("");
}
