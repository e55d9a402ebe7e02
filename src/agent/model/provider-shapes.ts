// Converts Parley's models, messages and tools to those of pi-ai. The types are nearly the same by design:
// transcripts use pi-ai's message format, plus ids and provenance.

import type {
  Api,
  Message as PiAnyMessage,
  AssistantMessage as PiAssistant,
  Model as PiModel,
  Tool as PiTool,
  ProviderStreams,
  TranscriptContext,
} from "@earendil-works/pi-ai";
import { normalizeContext } from "@earendil-works/pi-ai/utils/transcript";
import { optional } from "../../core/optional.ts";
import type { Message } from "../../core/shapes/message.ts";
import type { ProviderApi } from "../../core/shapes/settings/settings.ts";
import type { ToolSpec } from "../../core/shapes/tool.ts";
import type { ResolvedModel } from "./model.ts";
import { compatFor } from "./quirks.ts";

export type PiMessage = PiAssistant;
export type PiStreams = ProviderStreams;

type Known = Pick<PiModel<Api>, "compat" | "thinkingLevelMap">;
type Catalogue = readonly PiModel<Api>[];

const CATALOGUES: Record<ProviderApi, () => Promise<Catalogue>> = {
  // pi-ai lists OpenAI's models only for the Responses API.
  "openai-completions": async () => [],
  "openai-responses": async () =>
    Object.values((await import("@earendil-works/pi-ai/providers/openai.models")).OPENAI_MODELS),
  "anthropic-messages": async () =>
    Object.values((await import("@earendil-works/pi-ai/providers/anthropic.models")).ANTHROPIC_MODELS),
  "google-generative-ai": async () =>
    Object.values((await import("@earendil-works/pi-ai/providers/google.models")).GOOGLE_MODELS),
};

/** Cache by API and name. Its size is limited by the number of models in the settings. */
const KNOWN = new Map<string, Known>();

/** Returns the thinking parameters of a model from pi-ai's catalogue. */
async function knownModel(api: ProviderApi, id: string): Promise<Known> {
  const place = `${api} ${id}`;
  const before = KNOWN.get(place);
  if (before !== undefined) return before;
  const facts = await lookUp(api, id);
  KNOWN.set(place, facts);
  return facts;
}

async function lookUp(api: ProviderApi, id: string): Promise<Known> {
  const found = (await CATALOGUES[api]()).find((model) => model.id === id && model.api === api);
  if (found === undefined) return {};
  const { compat, thinkingLevelMap } = found;
  return optional({ compat, thinkingLevelMap });
}

export async function piModel(model: Extract<ResolvedModel, { kind: "provider" }>): Promise<PiModel<Api>> {
  const { provider, settings } = model;
  const { compat, ...facts } = await knownModel(provider.api, settings.id);
  const own = compatFor(provider, settings.id);
  return {
    ...facts,
    ...optional({ compat: own === undefined ? compat : { ...compat, ...own } }),
    id: settings.id,
    name: settings.name ?? settings.id,
    api: provider.api,
    provider: provider.id,
    baseUrl: provider.baseUrl,
    reasoning: settings.reasoning,
    input: settings.images ? ["text", "image"] : ["text"],
    cost: settings.cost,
    contextWindow: settings.contextWindow,
    maxTokens: settings.maxOutputTokens,
    headers: provider.headers,
  };
}

export function piTools(tools: readonly ToolSpec[]): PiTool[] {
  return tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters as PiTool["parameters"],
  }));
}

export function piMessages(
  api: ProviderApi,
  view: readonly Message[],
  system: string,
  tools: PiTool[],
): TranscriptContext {
  const messages = view.map((message) => piMessage(api, message));
  return normalizeContext({ systemPrompt: system, messages, tools });
}

function piMessage(api: ProviderApi, message: Message): PiAnyMessage {
  switch (message.role) {
    case "user":
      return { role: "user", content: contentFor(api, message.content), timestamp: message.timestamp };
    case "assistant": {
      const { id: _, ...rest } = message;
      return {
        ...rest,
        content: [...message.content] as PiAssistant["content"],
        // A message that an operator injected is sent as one that ended normally.
        stopReason: isPiStop(message.stopReason) ? message.stopReason : "stop",
      };
    }
    case "toolResult": {
      const { toolCallId, toolName, isError, timestamp } = message;
      return { role: "toolResult", toolCallId, toolName, isError, timestamp, content: [...message.content] };
    }
  }
}

/** Returns one text as a string in the API whose servers do not all take a list of parts. */
function contentFor(api: ProviderApi, content: Extract<Message, { role: "user" }>["content"]) {
  const [only] = content;
  const isText = api === "openai-completions" && content.length === 1 && only?.type === "text";
  return isText ? only.text : [...content];
}

function isPiStop(reason: string): reason is "stop" | "length" | "toolUse" {
  return reason === "stop" || reason === "length" || reason === "toolUse";
}
