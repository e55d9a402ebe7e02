// Histories with a part that the provider refuses: the turn is repeated once without it, and later turns do
// not send it again.

import { expect, test } from "vitest";
import type { ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import { PIXEL } from "../../kit/dialects/house.ts";
import {
  DONE,
  delta,
  event,
  json,
  named,
  openRaw,
  type RawReply,
  saying,
  stream,
} from "../../kit/dialects/raw.ts";

const OK = { status: "ok", text: "an answer", error: "" };

const anthropicError = (message: string, status = 400): RawReply =>
  json({ type: "error", error: { type: "invalid_request_error", message } }, status);
const openAiError = (message: string, status = 400): RawReply => json({ error: { message } }, status);
const googleError = (message: string): RawReply =>
  json({ error: { code: 400, message, status: "INVALID_ARGUMENT" } }, 400);

const anthropicStart = named("message_start", {
  message: { role: "assistant", content: [], usage: { input_tokens: 1 } },
});
const anthropicText = (index: number): string =>
  named("content_block_start", { index, content_block: { type: "text", text: "" } }) +
  named("content_block_delta", { index, delta: { type: "text_delta", text: "an answer" } }) +
  named("content_block_stop", { index });
const anthropicEnd =
  named("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }) +
  named("message_stop", {});

const ANSWERS: Record<ProviderApi, RawReply> = {
  "openai-completions": saying("an answer"),
  "anthropic-messages": stream(anthropicStart, anthropicText(0), anthropicEnd),
  "openai-responses": stream(
    named("response.output_item.added", { output_index: 0, item: { type: "message", id: "i", content: [] } }),
    named("response.content_part.added", {
      item_id: "i",
      output_index: 0,
      part: { type: "output_text", text: "" },
    }),
    named("response.output_text.delta", {
      item_id: "i",
      output_index: 0,
      content_index: 0,
      delta: "an answer",
    }),
    named("response.output_item.done", {
      output_index: 0,
      item: {
        type: "message",
        id: "i",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "an answer" }],
      },
    }),
    named("response.completed", { response: { id: "r", status: "completed", usage: { input_tokens: 1 } } }),
  ),
  "google-generative-ai": stream(
    event({
      candidates: [{ content: { role: "model", parts: [{ text: "an answer" }] }, finishReason: "STOP" }],
    }),
  ),
};

/** One refusal of each API; refusals/wordings.json has the words of all servers. */
const PICTURES: readonly (readonly [ProviderApi, RawReply])[] = [
  ["anthropic-messages", anthropicError("messages.0.content.1: could not process image")],
  ["openai-completions", openAiError("Invalid MIME type. Only image types are supported.")],
  ["openai-responses", openAiError("The image data you provided does not represent a valid image.")],
  ["google-generative-ai", googleError("Unable to process input image.")],
];

test.each(PICTURES)("%s: a refused picture does not stop the session: %#", async (api, refusal) => {
  const house = await openRaw({ api });
  let refusals = 0;
  const talk = await house.talk("m", ({ body }) => {
    if (!JSON.stringify(body).includes(PIXEL)) return ANSWERS[api];
    refusals += 1;
    return refusal;
  });
  expect(await talk.says("look", PIXEL)).toEqual(OK);
  expect(await talk.says("and now?")).toEqual(OK);
  expect(await talk.says("and then?")).toEqual(OK);
  // A refusal with another status than 400 may be retried first.
  expect(refusals).toBeLessThanOrEqual(3);
  expect(talk.requests.slice(-2).some(({ body }) => JSON.stringify(body).includes(PIXEL))).toBe(false);
});

test("a picture that is sent after a refused one is tried again", async () => {
  const house = await openRaw({ api: "anthropic-messages" });
  const other = PIXEL.replace("iVBOR", "iVBOS");
  const talk = await house.talk("m", ({ body }) =>
    JSON.stringify(body).includes(PIXEL)
      ? anthropicError("messages.0.content.1: could not process image")
      : ANSWERS["anthropic-messages"],
  );
  expect(await talk.says("look", PIXEL)).toEqual(OK);
  expect(await talk.says("look again", other)).toEqual(OK);
  expect(JSON.stringify(talk.requests.at(-1)?.body)).toContain(other);
});

const SIGNED = "T0xEU0lH";
const THOUGHTS: readonly (readonly [ProviderApi, RawReply, RawReply])[] = [
  ...["messages.1.content.0: Invalid `signature` in `thinking` block"].map(
    (message) =>
      [
        "anthropic-messages",
        stream(
          anthropicStart,
          named("content_block_start", {
            index: 0,
            content_block: { type: "thinking", thinking: "", signature: "" },
          }),
          named("content_block_delta", { index: 0, delta: { type: "thinking_delta", thinking: "hm" } }),
          named("content_block_delta", { index: 0, delta: { type: "signature_delta", signature: SIGNED } }),
          named("content_block_stop", { index: 0 }),
          anthropicText(1),
          anthropicEnd,
        ),
        anthropicError(message),
      ] as const,
  ),
  ...[
    "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
  ].map(
    (message) =>
      [
        "openai-responses",
        {
          pieces: [
            named("response.output_item.added", {
              output_index: 0,
              item: { type: "reasoning", id: "rs_1", summary: [] },
            }),
            named("response.output_item.done", {
              output_index: 0,
              item: {
                type: "reasoning",
                id: "rs_1",
                summary: [{ type: "summary_text", text: "hm" }],
                encrypted_content: SIGNED,
              },
            }),
            ...(ANSWERS["openai-responses"].pieces ?? []).map((piece) =>
              piece.replaceAll('"output_index":0', '"output_index":1'),
            ),
          ],
        },
        openAiError(message),
      ] as const,
  ),
  [
    "google-generative-ai",
    stream(
      event({
        candidates: [
          {
            content: { role: "model", parts: [{ text: "an answer", thoughtSignature: SIGNED }] },
            finishReason: "STOP",
          },
        ],
      }),
    ),
    googleError("Corrupted thought signature."),
  ],
];

test.each(THOUGHTS)(
  "%s: refused thinking is left out, and the message is answered: %#",
  async (api, first, refusal) => {
    const house = await openRaw({ api });
    let refusals = 0;
    const talk = await house.talk(
      "m",
      ({ body }, at) => {
        if (at === 0) return first;
        if (!JSON.stringify(body).includes(SIGNED)) return ANSWERS[api];
        refusals += 1;
        return refusal;
      },
      "medium",
    );
    expect(await talk.says("go")).toEqual(OK);
    expect(await talk.says("and now?")).toEqual(OK);
    expect(await talk.says("and then?")).toEqual(OK);
    expect(refusals).toBeLessThanOrEqual(1);
  },
);

test("calls that a provider finds without their results do not stop the session", async () => {
  const house = await openRaw();
  let refusals = 0;
  const words =
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.";
  const call = { index: 0, id: "a1", type: "function", function: { name: "sessions_list", arguments: "{}" } };
  const talk = await house.talk("m", ({ body, lastUserText, toolResults }) => {
    if (lastUserText.includes("go"))
      return toolResults.length === 0
        ? stream(delta({ tool_calls: [call] }), delta({}, "tool_calls"), DONE)
        : saying("an answer");
    if (!JSON.stringify(body).includes('"tool_calls"')) return saying("an answer");
    refusals += 1;
    return openAiError(words);
  });
  expect(await talk.says("go")).toEqual(OK);
  expect(await talk.says("and now?")).toEqual(OK);
  expect(await talk.says("and then?")).toEqual(OK);
  expect(refusals).toBeLessThanOrEqual(1);
});
