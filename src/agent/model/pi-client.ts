// Makes a model request through pi-ai, for APIs and variants that Parley's own clients do not support. The
// code of a provider is loaded at its first request.

import { lazyApi } from "@earendil-works/pi-ai/api/lazy";
import { fieldsOf } from "../../core/json.ts";
import { once } from "../../core/once.ts";
import { optional } from "../../core/optional.ts";
import type { ProviderApi } from "../../core/shapes/settings/settings.ts";
import { flat, isFlatDue, LongText } from "../../core/text/text-delta.ts";
import { outgoingFetch, withFetch } from "../../world/outgoing.ts";
import { ABORTED, untilAborted } from "../loop/abort.ts";
import { modelView } from "../loop/view.ts";
import {
  type Answer,
  type CallPart,
  type Part,
  plainUsage,
  type TextPart,
  type ThinkingPart,
} from "./answer.ts";
import { type PiMessage, type PiStreams, piMessages, piModel, piTools } from "./provider-shapes.ts";
import { watchedFetch } from "./watched-fetch.ts";
import { type Call, type Client, keyFor, WireError, withFormat } from "./wire.ts";

const lazy = (load: () => Promise<PiStreams>): PiStreams => lazyApi(once(load));

const STREAMS: Record<ProviderApi, PiStreams> = {
  "openai-completions": lazy(() => import("@earendil-works/pi-ai/api/openai-completions")),
  "openai-responses": lazy(() => import("@earendil-works/pi-ai/api/openai-responses")),
  "anthropic-messages": lazy(() => import("@earendil-works/pi-ai/api/anthropic-messages")),
  "google-generative-ai": lazy(() => import("@earendil-works/pi-ai/api/google-generative-ai")),
};

export const piClient: Client = async (call) => {
  const { answer, signal } = call;
  // pi-ai may return late after an abort.
  const stream = await untilAborted(open(call), signal);
  if (stream === ABORTED) return;
  const progress = new Progress(answer);
  for await (const event of stream) {
    if (signal.aborted || answer.over() !== undefined) return;
    if (event.type === "done") return progress.settle(event.message);
    if (event.type === "error") {
      progress.settle(event.error);
      throw new WireError(event.error.errorMessage ?? `stopped with ${event.error.stopReason}`);
    }
    progress.take(event);
  }
};

async function open(call: Call) {
  const { model, request, signal } = call;
  const { provider } = model;
  const known = await piModel(model);
  const messages = piMessages(modelView(request.entries, model), request.system, piTools(request.tools));
  const own = watchedFetch(outgoingFetch("model", provider.baseUrl, provider), call);
  // Google's client accepts no custom fetch: it calls the global one. It does not read a key from a header
  // either.
  const isGoogle = provider.api === "google-generative-ai";
  const apiKey = keyFor(isGoogle ? { ...provider, headers: {} } : provider);
  const stream = () =>
    STREAMS[provider.api].streamSimple(known, messages, {
      ...optional({ apiKey }),
      // The clients expect headers with the key here, not in the model.
      headers: { ...provider.headers },
      signal,
      maxRetries: 0,
      cacheRetention: "short",
      sessionId: request.sessionId,
      ...(request.thinking === "off" || !model.settings.reasoning ? {} : { reasoning: request.thinking }),
      ...(isGoogle ? {} : { fetch: own }),
      onPayload: (body: unknown) => withFormat(provider.api, fieldsOf(body), request.format),
    });
  return isGoogle ? withFetch(own, stream) : stream();
}

type StreamEvent = { type: string; contentIndex?: number; delta?: string; partial?: PiMessage };

/** Copies the events of a stream into an answer. */
class Progress {
  readonly #answer: Answer;
  /** Parts by their index in pi-ai's message. */
  readonly #parts = new Map<number, Part>();
  #flatLength = 0;

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  take({ type, contentIndex, delta = "", partial }: StreamEvent): void {
    if (contentIndex === undefined) return;
    const kind = type.slice(0, type.indexOf("_"));
    const part = this.#parts.get(contentIndex) ?? this.#open(contentIndex, kind);
    if (!type.endsWith("_delta") || part === undefined) return;
    if (part.type === "text") this.#answer.addText(part, delta);
    if (part.type === "thinking") this.#answer.addThinking(part, delta);
    if (part.type === "toolCall") this.#answer.addArguments(part, delta);
    this.#answer.show();
    const block = partial?.content[contentIndex];
    // Copies the text periodically, because pi-ai joins all deltas into a deep tree of strings.
    if (block?.type !== "text" || !isFlatDue(this.#flatLength, block.text.length)) return;
    this.#flatLength = block.text.length;
    block.text = flat(block.text);
  }

  /** Reads data that only the finished message has: signatures, names, usage. */
  settle(message: PiMessage): void {
    const parts = message.content.map((block, at): Part => {
      if (block.type === "text") return { ...block, text: new LongText(block.text) };
      if (block.type === "thinking") return { ...block, thinking: new LongText(block.thinking) };
      const known = this.#parts.get(at);
      const written = known?.type === "toolCall" ? known.written : [];
      const { id, name, thoughtSignature, arguments: whole } = block;
      return { type: "toolCall", id, name, written, whole, thoughtSignature };
    });
    this.#answer.parts.splice(0, Number.POSITIVE_INFINITY, ...parts);
    this.#answer.usage = plainUsage(message.usage);
    this.#answer.stopReason = message.stopReason;
  }

  #open(at: number, kind: string): Part | undefined {
    const part = emptyPart(kind);
    if (part !== undefined) this.#parts.set(at, this.#answer.open(part));
    return part;
  }
}

function emptyPart(kind: string): TextPart | ThinkingPart | CallPart | undefined {
  if (kind === "text") return { type: "text", text: new LongText() };
  if (kind === "thinking") return { type: "thinking", thinking: new LongText() };
  return kind === "toolcall" ? { type: "toolCall", id: "", name: "", written: [] } : undefined;
}
