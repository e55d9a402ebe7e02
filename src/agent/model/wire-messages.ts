// Common part of the request builders of Parley's own clients: the messages for a model, and its limits. It
// uses pi-ai's helpers that need no provider's SDK, so that all clients send the same messages.

import type { Api, Message as PiMessage, Model as PiModel } from "@earendil-works/pi-ai";
import { clampMaxTokensToContext } from "@earendil-works/pi-ai/api/simple-options";
import { transformMessages } from "@earendil-works/pi-ai/api/transform-messages";
import { oncePerTool } from "../../core/bounded.ts";
import { modelView } from "../loop/view.ts";
import type { ModelRequest } from "./model.ts";
import { piMessages, piModel, piTools } from "./provider-shapes.ts";
import type { ProviderModel } from "./wire.ts";

type Context = ReturnType<typeof piMessages>;

export interface Prepared {
  readonly model: PiModel<Api>;
  readonly context: Context;
  /** The conversation, without its system prompt. */
  readonly messages: readonly PiMessage[];
  readonly system: string;
  readonly tools: ReturnType<typeof piTools>;
  /** The thinking level, or undefined if none is requested. */
  readonly thinking: Exclude<ModelRequest["thinking"], "off"> | undefined;
}

/** Prepares a request. `callId`: converts another model's tool call id to one that this API accepts. */
export async function prepared(
  own: ProviderModel,
  { entries, system, tools, thinking }: ModelRequest,
  callId: (id: string) => string,
): Promise<Prepared> {
  const model = await piModel(own);
  const declared = piTools(tools);
  const context = piMessages(modelView(entries, own), system, declared);
  const messages = transformMessages(context.messages, model, callId).filter(
    (message) => message.role !== "system",
  );
  const isAsked = thinking !== "off" && own.settings.reasoning;
  return { model, context, messages, system, tools: declared, thinking: isAsked ? thinking : undefined };
}

type Tool = Prepared["tools"][number];

/**
 * Returns a function that returns the JSON of a tool in one format. The texts are cached, because they are
 * the longest part of most requests, and nearly all requests contain the same ones.
 */
export function toolTexts(sent: (tool: Tool) => object): (tool: Tool) => string {
  return oncePerTool((tool: Tool) => JSON.stringify(sent(tool)));
}

const UNPAIRED = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** Removes lone surrogates, which providers refuse. */
export function whole(text: string): string {
  return text.isWellFormed() ? text : text.replace(UNPAIRED, "");
}

/** Returns the maximum tokens of the answer: the setting, reduced to the free room in the context window. */
export const outputTokens = ({ model, context }: Prepared): number =>
  clampMaxTokensToContext(model, context, model.maxTokens);
