// Writes an answer in the formats that are not chat completions: Responses, Messages and Gemini.

import type { ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import type { Json } from "./dialect.ts";
import { piecesOf, type Sent, type Speech } from "./speech.ts";

export type OtherApi = Exclude<ProviderApi, "openai-completions">;

interface Writer {
  stream(speech: Speech, model: string, first: number): Sent;
  document(speech: Speech, model: string, first: number): unknown;
}

const event = (type: string, more: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;

type Block = Json & { readonly type: string };

function anthropicBlocks({ thinking = "", text = "", calls = [] }: Speech, first: number): Block[] {
  return [
    ...(thinking === "" ? [] : [{ type: "thinking", thinking, signature: "c2lnbmF0dXJl" }]),
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...calls.map(({ name, arguments: input }, at) => ({
      type: "tool_use",
      id: `toolu_${first + at}`,
      name,
      input,
    })),
  ];
}

const anthropicStop = ({ end, calls = [] }: Speech): string =>
  end === "length" ? "max_tokens" : calls.length > 0 ? "tool_use" : "end_turn";

function anthropicBlock(block: Block, index: number): string[] {
  const delta = (value: object): string => event("content_block_delta", { index, delta: value });
  const open = (content_block: object): string => event("content_block_start", { index, content_block });
  const close = event("content_block_stop", { index });
  switch (block.type) {
    case "thinking":
      return [
        open({ type: "thinking", thinking: "", signature: "" }),
        delta({ type: "thinking_delta", thinking: block.thinking }),
        delta({ type: "signature_delta", signature: block.signature }),
        close,
      ];
    case "text":
      return [
        open({ type: "text", text: "" }),
        ...piecesOf(String(block.text)).map((text) => delta({ type: "text_delta", text })),
        close,
      ];
    default:
      return [
        open({ ...block, input: {} }),
        ...piecesOf(JSON.stringify(block.input), 2).map((partial_json) =>
          delta({ type: "input_json_delta", partial_json }),
        ),
        close,
      ];
  }
}

const anthropicMessage = (model: string): object => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model,
});

const ANTHROPIC: Writer = {
  stream: (speech, model, first) => {
    const usage = { input_tokens: 100, output_tokens: 1 };
    const message = { ...anthropicMessage(model), content: [], stop_reason: null, usage };
    const delta = { stop_reason: anthropicStop(speech), stop_sequence: null };
    const isEndless = speech.form === "endless";
    return {
      pieces: [
        event("message_start", { message }),
        event("ping", {}),
        ...anthropicBlocks(speech, first).flatMap(anthropicBlock),
        event("message_delta", { delta, usage: { output_tokens: 20 } }),
        ...(isEndless ? [] : [event("message_stop", {})]),
      ],
      isOpen: isEndless,
    };
  },
  document: (speech, model, first) => ({
    ...anthropicMessage(model),
    content: anthropicBlocks(speech, first),
    ...{ stop_reason: anthropicStop(speech), stop_sequence: null },
    usage: { input_tokens: 100, output_tokens: 20 },
  }),
};

function responsesItems({ thinking = "", text = "", calls = [] }: Speech, first: number): Block[] {
  const summary = [{ type: "summary_text", text: thinking }];
  const content = [{ type: "output_text", text, annotations: [] }];
  return [
    ...(thinking === ""
      ? []
      : [{ type: "reasoning", id: `rs_${first}`, summary, encrypted_content: "c2VjcmV0" }]),
    ...(text === ""
      ? []
      : [{ type: "message", id: `msg_${first}`, role: "assistant", status: "completed", content }]),
    ...calls.map(({ name, arguments: given }, at) => ({
      ...{ type: "function_call", id: `fc_${first + at}`, call_id: `call_${first + at}`, name },
      ...{ arguments: JSON.stringify(given), status: "completed" },
    })),
  ];
}

function responsesItem(item: Block, output_index: number): string[] {
  const at = { output_index, item_id: item.id };
  const empty: Record<string, object> = {
    reasoning: { summary: [] },
    message: { status: "in_progress", content: [] },
    function_call: { arguments: "", status: "in_progress" },
  };
  const added = event("response.output_item.added", { output_index, item: { ...item, ...empty[item.type] } });
  const done = event("response.output_item.done", { output_index, item });
  if (item.type === "message") {
    const [part] = item.content as { text: string }[];
    const place = { ...at, content_index: 0 };
    return [
      added,
      event("response.content_part.added", { ...place, part: { ...part, text: "" } }),
      ...piecesOf(part?.text ?? "").map((delta) => event("response.output_text.delta", { ...place, delta })),
      event("response.output_text.done", { ...place, text: part?.text }),
      done,
    ];
  }
  if (item.type === "reasoning") {
    const [part] = item.summary as { text: string }[];
    const delta = { ...at, summary_index: 0, delta: part?.text };
    return [added, event("response.reasoning_summary_text.delta", delta), done];
  }
  const given = String(item.arguments);
  return [
    added,
    ...piecesOf(given, 2).map((delta) => event("response.function_call_arguments.delta", { ...at, delta })),
    event("response.function_call_arguments.done", { ...at, arguments: given }),
    done,
  ];
}

function responsesWhole(speech: Speech, model: string, first: number): object {
  const isCut = speech.end === "length";
  return {
    ...{ id: "resp_1", object: "response", created_at: 1, model },
    ...(isCut
      ? { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
      : { status: "completed" }),
    output: responsesItems(speech, first),
    usage: { input_tokens: 100, output_tokens: 20, total_tokens: 120 },
  };
}

const RESPONSES: Writer = {
  stream: (speech, model, first) => {
    const response = {
      id: "resp_1",
      object: "response",
      created_at: 1,
      model,
      status: "in_progress",
      output: [],
    };
    const last = speech.end === "length" ? "response.incomplete" : "response.completed";
    return {
      pieces: [
        event("response.created", { response }),
        ...responsesItems(speech, first).flatMap(responsesItem),
        event(last, { response: responsesWhole(speech, model, first) }),
      ],
      isOpen: speech.form === "endless",
    };
  },
  document: responsesWhole,
};

function googleParts({ thinking = "", text = "", calls = [] }: Speech, isWhole: boolean): Json[][] {
  const said = isWhole ? [text].filter((one) => one !== "") : piecesOf(text);
  return [
    ...(thinking === "" ? [] : [[{ text: thinking, thought: true }]]),
    ...said.map((one) => [{ text: one }]),
    ...(calls.length === 0
      ? []
      : [
          calls.map(({ name, arguments: args }, at) => ({
            functionCall: { name, args },
            ...(at === 0 ? { thoughtSignature: "c2lnbmF0dXJl" } : {}),
          })),
        ]),
  ];
}

const GOOGLE_USAGE = { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 };
const googleStop = ({ end }: Speech): string => (end === "length" ? "MAX_TOKENS" : "STOP");

const GOOGLE: Writer = {
  stream: (speech, model) => {
    const chunk = (candidate: object, more: object = {}): string =>
      `data: ${JSON.stringify({ candidates: [{ index: 0, ...candidate }], modelVersion: model, ...more })}\r\n\r\n`;
    return {
      pieces: [
        ...googleParts(speech, false).map((parts) => chunk({ content: { role: "model", parts } })),
        // The last chunk has no content, as after an empty answer.
        chunk({ finishReason: googleStop(speech) }, { usageMetadata: GOOGLE_USAGE }),
      ],
      isOpen: speech.form === "endless",
    };
  },
  document: (speech, model) => [
    {
      candidates: [
        {
          ...{ index: 0, finishReason: googleStop(speech) },
          content: { role: "model", parts: googleParts(speech, true).flat() },
        },
      ],
      ...{ usageMetadata: GOOGLE_USAGE, modelVersion: model },
    },
  ],
};

export const OTHER_WRITERS: Record<OtherApi, Writer> = {
  "openai-responses": RESPONSES,
  "anthropic-messages": ANTHROPIC,
  "google-generative-ai": GOOGLE,
};
