// Makes a model request through pi-ai, which knows the APIs of the providers and many of their variants. The
// code of an API is loaded at its first request.

import { lazyApi } from "@earendil-works/pi-ai/api/lazy";
import { fieldsOf } from "../../core/json.ts";
import { once } from "../../core/once.ts";
import { optional } from "../../core/optional.ts";
import type { ProviderApi } from "../../core/shapes/settings/settings.ts";
import { head } from "../../core/text/cut.ts";
import { flat, isFlatDue, LongText } from "../../core/text/text-delta.ts";
import { outgoingFetch } from "../../world/outgoing.ts";
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
import { type Call, keyFor, type ProviderModel, RequestError, withFormat, withToolChoice } from "./call.ts";
import { corrected, learn, unlearn } from "./corrections.ts";
import { ChatForm } from "./forms/chat.ts";
import { messageIn } from "./forms/error-words.ts";
import { GeminiForm } from "./forms/gemini.ts";
import { MessagesForm } from "./forms/messages.ts";
import { type PlainForm, plainFetch } from "./forms/plain-stream.ts";
import { ResponsesForm } from "./forms/responses.ts";
import { type PiMessage, type PiStreams, piMessages, piModel, piTools } from "./provider-shapes.ts";
import { judgeRefusal } from "./refusals.ts";

const lazy = (load: () => Promise<PiStreams>): PiStreams => lazyApi(once(load));

const STREAMS: Record<ProviderApi, PiStreams> = {
  "openai-completions": lazy(() => import("@earendil-works/pi-ai/api/openai-completions")),
  "openai-responses": lazy(() => import("@earendil-works/pi-ai/api/openai-responses")),
  "anthropic-messages": lazy(() => import("@earendil-works/pi-ai/api/anthropic-messages")),
  "google-generative-ai": lazy(() => import("@earendil-works/pi-ai/api/google-generative-ai")),
};

type Signed = ConstructorParameters<typeof ChatForm>[0];

const FORMS: Record<ProviderApi, (signed: Signed) => PlainForm> = {
  "openai-completions": (signed) => new ChatForm(signed),
  "openai-responses": () => new ResponsesForm(),
  "anthropic-messages": () => new MessagesForm(),
  "google-generative-ai": () => new GeminiForm(),
};

/** Statuses of a server that refuses the form of a request. */
const REFUSED_FORM = [400, 404, 422, 500, 501];

/**
 * Fills the answer of the call. If the server refuses the form of the request, learns the form that it takes,
 * and repeats the request. Rejects with a `RequestError` if the request failed.
 */
export async function callProvider(call: Call): Promise<void> {
  const { seen, model, answer, world } = call;
  const taught: string[] = [];
  for (;;) {
    const sent: { body?: Record<string, unknown> } = {};
    try {
      return await attempt(call, sent);
    } catch (error) {
      const { status = 0, words } = seen;
      const isForm = error instanceof RequestError && REFUSED_FORM.includes(status) && words !== undefined;
      const says = isForm && !answer.begun ? lesson(model, status, words, sent.body ?? {}) : undefined;
      if (says === undefined) {
        unlearn(model, taught);
        throw error;
      }
      taught.push(says);
      world.log.warn(
        { model: model.ref, why: head(words ?? "", WORDS_MAX) },
        `the server refused a form; from now on: ${says}`,
      );
      delete seen.status;
      delete seen.words;
    }
  }
}

/** Maximum characters of a refusal in the log. */
const WORDS_MAX = 500;
const PICTURE = /"(image_url|input_image|image|inlineData)"/;

function lesson(model: ProviderModel, status: number, raw: string, body: Record<string, unknown>) {
  const refused = judgeRefusal(status, raw);
  // Another form of the request would not make the conversation shorter, or a picture readable.
  if (refused === "length" || (refused === "pictures" && PICTURE.test(JSON.stringify(body))))
    return undefined;
  return learn(model, { status, words: messageIn(raw) ?? raw, isForm: refused === undefined }, body);
}

async function attempt(call: Call, sent: { body?: Record<string, unknown> }): Promise<void> {
  const { answer, signal } = call;
  const signatures = new Map<string, string>();
  // pi-ai may return late after an abort.
  const stream = await untilAborted(open(call, sent, signatures), signal);
  if (stream === ABORTED) return;
  const progress = new Progress(answer, signatures);
  for await (const event of stream) {
    if (signal.aborted || answer.over() !== undefined) return;
    if (event.type === "done") return progress.settle(event.message);
    if (event.type === "error") {
      progress.settle(event.error);
      throw new RequestError(event.error.errorMessage ?? `stopped with ${event.error.stopReason}`);
    }
    progress.take(event);
  }
}

async function open(call: Call, sent: { body?: Record<string, unknown> }, signatures: Map<string, string>) {
  const { model, request, signal } = call;
  const { provider } = model;
  const known = await piModel(model);
  const view = modelView(request.entries, model);
  const messages = piMessages(provider.api, view, request.system, piTools(request.tools));
  const form = () => FORMS[provider.api]((id, signature) => signatures.set(id, signature));
  // Google's client reads no key from a header.
  const isGoogle = provider.api === "google-generative-ai";
  return STREAMS[provider.api].streamSimple(known, messages, {
    ...optional({ apiKey: keyFor(isGoogle ? { ...provider, headers: {} } : provider) }),
    // The clients expect headers with the key here, not in the model.
    headers: { ...provider.headers },
    signal,
    maxRetries: 0,
    cacheRetention: "short",
    sessionId: request.sessionId,
    identity: { userAgent: { custom: "parley" } },
    ...(request.thinking === "off" || !model.settings.reasoning ? {} : { reasoning: request.thinking }),
    fetch: plainFetch(outgoingFetch("model", provider.baseUrl, provider), call, form),
    onPayload: (body: unknown) => {
      const formed = withFormat(provider.api, addSignatures(fieldsOf(body), view), request.format);
      sent.body = corrected(model, fieldsOf(withToolChoice(provider.api, formed, request.mustCall)));
      return sent.body;
    },
  });
}

/** Adds the thought signatures of earlier tool calls, which pi-ai does not know in this API. */
function addSignatures(
  body: Record<string, unknown>,
  view: ReturnType<typeof modelView>,
): Record<string, unknown> {
  const blocks = view.flatMap((message) => (message.role === "assistant" ? message.content : []));
  const calls = blocks.flatMap((block) => (block.type === "toolCall" ? [block] : []));
  const known = new Map(calls.map(({ id, thoughtSignature }) => [id, thoughtSignature]));
  if (!Array.isArray(body.messages) || calls.every(({ thoughtSignature }) => thoughtSignature === undefined))
    return body;
  const messages = body.messages.map((message: unknown) => {
    const { tool_calls } = fieldsOf(message);
    if (!Array.isArray(tool_calls)) return message;
    const sent = tool_calls.map((one: unknown) => {
      const thought_signature = known.get(String(fieldsOf(one).id));
      return thought_signature === undefined
        ? one
        : { ...fieldsOf(one), extra_content: { google: { thought_signature } } };
    });
    return { ...fieldsOf(message), tool_calls: sent };
  });
  return { ...body, messages };
}

type StreamEvent = { type: string; contentIndex?: number; delta?: string; partial?: PiMessage };

/** Copies the events of a stream into an answer. */
class Progress {
  readonly #answer: Answer;
  /** Parts by their index in pi-ai's message. */
  readonly #parts = new Map<number, Part>();
  readonly #signatures: ReadonlyMap<string, string>;
  #flatLength = 0;

  /** `signatures`: thought signatures of tool calls that pi-ai does not read. */
  constructor(answer: Answer, signatures: ReadonlyMap<string, string>) {
    this.#answer = answer;
    this.#signatures = signatures;
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
      const { id, name, arguments: whole } = block;
      const thoughtSignature = block.thoughtSignature ?? this.#signatures.get(id);
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
