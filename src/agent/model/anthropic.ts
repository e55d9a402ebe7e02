// Builds requests in the format of Anthropic's Messages API. anthropic-reader.ts reads the answer.

import type { Message as PiMessage } from "@earendil-works/pi-ai";
import {
  adjustMaxTokensForThinking,
  clampMaxTokensToContext,
} from "@earendil-works/pi-ai/api/simple-options";
import { optional } from "../../core/optional.ts";
import { AnthropicReader } from "./anthropic-reader.ts";
import type { AnthropicCompat } from "./provider-shapes.ts";
import { type Format, keyFor } from "./wire.ts";
import { outputTokens, type Prepared, prepared, toolTexts, whole } from "./wire-messages.ts";

type Json = Record<string, unknown>;
type Block = Exclude<PiMessage["content"], string>[number];

const VERSION = "2023-06-01";
const CALL_ID_CHARS_MAX = 64;
/** Output tokens that thinking must leave for the answer. */
const ANSWER_TOKENS_MIN = 1_024;
const BUDGET_TOKENS_MIN = 1_024;
const CACHED = { cache_control: { type: "ephemeral" } };

const callId = (id: string): string => id.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, CALL_ID_CHARS_MAX);

export const anthropicFormat: Format = async (own, request, answer) => {
  const { provider } = own;
  const ready = await prepared(own, request, callId);
  const compat = (ready.model.compat ?? {}) as AnthropicCompat;
  const key = keyFor(provider);
  const betas = betasOf(ready, compat);
  const fallbacks = compat.allowedFallbackModels ?? [];
  return {
    path: "/v1/messages?beta=true",
    headers: {
      "anthropic-version": VERSION,
      ...optional({ "x-api-key": key }),
      ...(betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") }),
    },
    body: {
      model: ready.model.id,
      messages: sentMessages(ready, compat),
      stream: true,
      ...(ready.system === "" ? {} : { system: [{ type: "text", text: whole(ready.system), ...CACHED }] }),
      ...thinkingOf(ready, compat),
      ...(fallbacks.length === 0 ? {} : { fallbacks: fallbacks.map(({ model }) => ({ model })) }),
    },
    ...(ready.tools.length === 0 ? {} : { tools: sentTools(ready.tools, changesTools(ready, compat)) }),
    reader: new AnthropicReader(own, answer, compat),
  };
};

/**
 * Returns whether tools may change during the conversation, which the request must declare from the start.
 */
const changesTools = ({ tools }: Prepared, compat: AnthropicCompat): boolean =>
  tools.length > 0 &&
  compat.supportsMidConvoSystemMessages === true &&
  compat.supportsMidConvoToolChanges === true;

/** Returns the beta flags. A header of the settings replaces all of them (wire.ts). */
function betasOf(ready: Prepared, compat: AnthropicCompat): string[] {
  const betas: string[] = [];
  if (ready.thinking !== undefined && compat.forceAdaptiveThinking !== true)
    betas.push("interleaved-thinking-2025-05-14");
  if ((compat.allowedFallbackModels ?? []).length > 0) betas.push("server-side-fallback-2026-07-01");
  if (compat.supportsMidConvoEffort === true)
    betas.push("mid-conversation-output-config-2026-07-01", "thinking-binding-controls-2026-08-01");
  if (changesTools(ready, compat)) betas.push("mid-conversation-tool-changes-2026-07-01");
  return betas;
}

/** Returns the output limit and the thinking parameters. */
function thinkingOf(ready: Prepared, compat: AnthropicCompat): Json {
  const { model, thinking, context } = ready;
  const max_tokens = outputTokens(ready);
  const display = "summarized";
  if (compat.supportsMidConvoEffort === true) {
    const block_binding = { prefix_mismatch_behavior: "drop_block" };
    const how = { type: "adaptive", display, block_binding };
    return { max_tokens, thinking: how, output_config: { effort: "high" } };
  }
  if (!model.reasoning) return { max_tokens };
  if (thinking === undefined) {
    const isAlwaysOn = model.thinkingLevelMap?.off === null;
    return { max_tokens, ...(isAlwaysOn ? {} : { thinking: { type: "disabled" } }) };
  }
  if (compat.forceAdaptiveThinking === true)
    return {
      max_tokens,
      thinking: { type: "adaptive", display },
      output_config: { effort: effortOf(ready) },
    };
  const adjusted = adjustMaxTokensForThinking(max_tokens, model.maxTokens, thinking);
  const max = clampMaxTokensToContext(model, context, adjusted.maxTokens);
  const budget = Math.min(adjusted.thinkingBudget, Math.max(0, max - ANSWER_TOKENS_MIN));
  return {
    max_tokens: max,
    thinking: { type: "enabled", budget_tokens: budget || BUDGET_TOKENS_MIN, display },
  };
}

function effortOf({ model, thinking }: Prepared): string {
  const mapped = thinking === undefined ? undefined : model.thinkingLevelMap?.[thinking];
  if (typeof mapped === "string") return mapped;
  if (thinking === "minimal") return "low";
  return thinking === "low" || thinking === "medium" ? thinking : "high";
}

/**
 * Placeholder that is sent if tools may change later. Without it the first change would invalidate the prompt
 * cache.
 */
const LATER_TOOL = JSON.stringify({
  name: "__pi_deferred_placeholder__",
  description: "Reserved placeholder. Never available. Never call this.",
  input_schema: { type: "object", properties: {}, required: [] },
  defer_loading: true,
});

function sentTool({ name, description, parameters }: Prepared["tools"][number]): Json {
  const { properties = {}, required = [] } = parameters as Json;
  const input_schema = { type: "object", properties, required };
  return { name, description, eager_input_streaming: true, input_schema };
}

const toolText = toolTexts(sentTool);
/** Returns the text of the last tool: the provider caches the prompt up to it. */
const lastToolText = toolTexts((tool) => ({ ...sentTool(tool), ...CACHED }));

function sentTools(tools: Prepared["tools"], mayChange: boolean): string[] {
  const sent = tools.map((tool, at) => (at === tools.length - 1 ? lastToolText(tool) : toolText(tool)));
  return mayChange ? [...sent, LATER_TOOL] : sent;
}

function sentMessages(ready: Prepared, compat: AnthropicCompat): Json[] {
  const sent: { role: string; content: Json[] }[] = [];
  let results: Json[] | undefined;
  for (const message of ready.messages) {
    if (message.role === "toolResult") {
      // All results for the calls of one answer become one message.
      if (results === undefined) {
        results = [];
        sent.push({ role: "user", content: results });
      }
      results.push(sentResult(message));
      continue;
    }
    results = undefined;
    const content =
      message.role === "user" ? blocksOf(message.content).flatMap(sentBlock) : sentAnswer(message.content);
    if (content.length > 0) sent.push({ role: message.role, content });
  }
  const last = sent.at(-1);
  const block = last?.content.at(-1);
  if (last?.role === "user" && block !== undefined) Object.assign(block, CACHED);
  if (compat.supportsMidConvoEffort !== true) return sent;
  const output_config = { effort: effortOf(ready) };
  return [...sent, { role: "system", content: [], output_config }];
}

const blocksOf = (content: string | readonly Block[]): readonly Block[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

function sentBlock(block: Block): Json[] {
  switch (block.type) {
    case "text":
      return block.text.trim() === "" ? [] : [{ type: "text", text: whole(block.text) }];
    case "image": {
      const source = { type: "base64", media_type: block.mimeType, data: block.data };
      return [{ type: "image", source }];
    }
    case "thinking":
      return sentThinking(block);
    case "toolCall":
      return [{ type: "tool_use", id: block.id, name: block.name, input: block.arguments }];
  }
}

const sentAnswer = (content: readonly Block[] | string): Json[] => blocksOf(content).flatMap(sentBlock);

function sentThinking(block: Extract<Block, { type: "thinking" }>): Json[] {
  const { redacted, thinkingSignature: signature = "" } = block;
  if (redacted === true) return [{ type: "redacted_thinking", data: signature }];
  const thinking = whole(block.thinking);
  if (signature.trim() !== "") return [{ type: "thinking", thinking, signature }];
  return thinking.trim() === "" ? [] : [{ type: "text", text: thinking }];
}

function sentResult(message: Extract<PiMessage, { role: "toolResult" }>): Json {
  const { toolCallId, content, isError } = message;
  const hasImages = content.some((block) => block.type === "image");
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const label = texts.length === 0 ? [{ type: "text", text: "(see attached image)" }] : [];
  const blocks = content.flatMap((block) =>
    block.type === "text" ? [{ type: "text", text: whole(block.text) }] : sentBlock(block),
  );
  return {
    type: "tool_result",
    tool_use_id: toolCallId,
    content: hasImages ? [...label, ...blocks] : whole(texts.join("\n")),
    is_error: isError,
  };
}
