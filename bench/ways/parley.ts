// Parley's way to models, as a client for the comparison.

import { type ModelRequest, resolveModel, UNREADABLE_ARGUMENTS } from "../../src/agent/model/model.ts";
import { requestOnce } from "../../src/agent/model/provider-request.ts";
import type { AssistantMessage, Entry } from "../../src/core/shapes/message.ts";
import { ANSWER_LIMITS, type ProviderSettings } from "../../src/core/shapes/settings/settings.ts";
import { plainClock } from "../../src/world/plain.ts";
import { fakeWorld } from "../../tests/kit/world.ts";
import type { Answered } from "./cases.ts";
import { type Call, TOOL, type WayClient } from "./clients.ts";

const { clock, ...world } = fakeWorld();
const WORLD = { ...world, clock: { ...clock, ...plainClock } };
const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const WINDOW = { contextWindow: 100_000, maxOutputTokens: 4_000 };

/** Returns the conversation: one message, or a call with its result of another model. */
function entriesFor(history: string): Entry[] {
  const text = history === "none" || history === "tools" ? "go" : history;
  const user: Entry = { id: "u1", role: "user", content: [{ type: "text", text }], timestamp: 1 };
  if (history !== "tools") return [user];
  const id = "call_1|fc_1";
  const made: Entry = {
    ...{ id: "a1", role: "assistant", api: "openai-responses", provider: "other", model: "other" },
    content: [{ type: "toolCall", id, name: TOOL.name, arguments: { limit: 1 } }],
    ...{ stopReason: "toolUse", timestamp: 1 },
    usage: { ...NO_COST, totalTokens: 0, cost: { ...NO_COST, total: 0 } },
  };
  const content = [{ type: "text", text: "none" }] as const;
  const about = { toolCallId: id, toolName: TOOL.name, isError: false, timestamp: 1 };
  return [user, made, { id: "r1", role: "toolResult", content, ...about }];
}

function requestFor({ api, baseUrl, reasoning, history, vendor }: Call): ModelRequest {
  const settings = { id: "m", ...WINDOW, reasoning, images: true, cost: NO_COST };
  const provider: ProviderSettings = {
    ...{ id: vendor ?? "local", api, apiKey: "test-key-123456", headers: {}, models: [settings] },
    baseUrl: api === "anthropic-messages" ? baseUrl.replace(/\/v1$/, "") : baseUrl,
    ...{ connectTimeoutSeconds: 10, idleTimeoutSeconds: 90, maxRetries: 0 },
  };
  const model = resolveModel([provider], `${provider.id}/m`);
  if (!model.ok) throw new Error(model.error);
  return {
    ...{ model: model.value, system: "You are a test.", entries: entriesFor(history) },
    ...{ tools: [{ ...TOOL, parallel: true, idempotent: true }], sessionId: "s1", limits: ANSWER_LIMITS },
    thinking: reasoning ? "high" : "off",
  };
}

function answeredBy(content: AssistantMessage["content"]): Pick<Answered, "text" | "thinking" | "calls"> {
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const thinking = content.map((block) => (block.type === "thinking" ? block.thinking : "")).join("");
  const calls = content.flatMap((block) =>
    block.type !== "toolCall"
      ? []
      : [
          {
            name: block.name,
            arguments: UNREADABLE_ARGUMENTS in block.arguments ? undefined : block.arguments,
          },
        ],
  );
  return { text, thinking, calls };
}

export const parleyClient: WayClient = {
  name: "Parley",
  async answer(call) {
    const request = requestFor(call);
    if (request.model.kind !== "provider") throw new Error("the model has no provider");
    const made = await requestOnce(WORLD, request.model, request, () => {}, call.signal);
    if (made.kind === "message")
      return { ...answeredBy(made.message.content), stop: made.message.stopReason };
    const partial = answeredBy(made.partial?.content ?? []);
    if (made.kind === "aborted") return { ...partial, error: "aborted" };
    if (made.kind === "too large") return { ...partial, error: made.error };
    return { ...partial, error: made.failure.error, isOverflow: made.failure.refusal === "length" };
  },
};
