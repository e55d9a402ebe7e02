// Owns one request to a provider: our shapes in, one try, our shapes out. pi-ai speaks the four APIs.
// P1: provider code is loaded at the first request, never when this file is imported.
// P2: an abort settles the request at once, also where the provider's client ignores its signal.
// P3: a tool call whose arguments aren't a JSON object is kept as it was written, and marked.

import { lazyApi } from "@earendil-works/pi-ai/api/lazy";
import { isContextOverflow } from "@earendil-works/pi-ai/utils/overflow";
import { isRetryableAssistantError } from "@earendil-works/pi-ai/utils/retry";
import { isObject, jsonOf } from "../core/json.ts";
import type { AssistantMessage, Usage } from "../core/message.ts";
import { once } from "../core/once.ts";
import type { ProviderApi } from "../core/settings.ts";
import { flat, type TextDelta } from "../core/text-delta.ts";
import { outgoingFetch, withFetch } from "../world/outgoing.ts";
import type { World } from "../world.ts";
import { ABORTED, untilAborted } from "./abort.ts";
import { type ModelRequest, type ResolvedModel, UNREADABLE_ARGUMENTS, type WrittenMessage } from "./model.ts";
import { type PiMessage, type PiStreams, piMessages, piModel, piTools } from "./provider-shapes.ts";
import type { RequestFailure } from "./retry.ts";
import { modelView } from "./view.ts";
import { type Seen, type Watched, watchedFetch } from "./watched-fetch.ts";

/** Bytes between two events of a stream beyond those of the answer itself: its frame, comments. */
const RAW_BYTES_ANYWAY = 1024 * 1024;

/** The client joins its text as a tree of all deltas. */
const FLAT_EVERY_CHARS = 32 * 1024;

/** Longer provider errors are cut. */
const ERROR_CHARS_MAX = 2_000;

export type RequestOutcome =
  | { readonly kind: "message"; readonly message: WrittenMessage }
  | { readonly kind: "aborted"; readonly partial?: WrittenMessage }
  /** The answer passed a limit, and was not read on. */
  | { readonly kind: "too large"; readonly error: string; readonly partial?: WrittenMessage }
  | { readonly kind: "failed"; readonly failure: RequestFailure; readonly partial?: WrittenMessage };

export type ProviderModel = Extract<ResolvedModel, { kind: "provider" }>;

const lazy = (load: () => Promise<PiStreams>): PiStreams => lazyApi(once(load));

const STREAMS: Record<ProviderApi, PiStreams> = {
  "openai-completions": lazy(() => import("@earendil-works/pi-ai/api/openai-completions")),
  "openai-responses": lazy(() => import("@earendil-works/pi-ai/api/openai-responses")),
  "anthropic-messages": lazy(() => import("@earendil-works/pi-ai/api/anthropic-messages")),
  "google-generative-ai": lazy(() => import("@earendil-works/pi-ai/api/google-generative-ai")),
};

/** A reason that is there already: without one each abort makes an error with its stack. */
const OVER = new Error("the request is over");

/** Before the JSON of an error its status may stand. */
const STATUS_CHARS_MAX = 80;

/** Words of HTTP clients for a closed connection. They tell people nothing more. */
const CUT = /^(terminated|aborted|other side closed|premature close|socket hang up)\.?$/i;

/** Makes one try. `onText` gets the text as it comes; nothing is retried here. */
export async function requestOnce(
  world: World,
  model: ProviderModel,
  request: ModelRequest,
  onText: (delta: TextDelta) => void,
  signal: AbortSignal,
): Promise<RequestOutcome> {
  const seen: Seen = {};
  const stop = new AbortController();
  const watch = AbortSignal.any([signal, stop.signal]);
  const silence = watchSilence(world, model.provider.idleTimeoutSeconds * 1_000, () => stop.abort());
  const progress = new Progress(onText);
  try {
    // Loading a provider's code takes its time, too: the abort doesn't wait for it.
    const heard = (bytes: number): void => {
      silence.heard();
      if (progress.heard(bytes, request.limits)) stop.abort();
    };
    const piStream = await untilAborted(open(model, request, { seen, heard, world }, watch), watch);
    const events = piStream === ABORTED ? undefined : piStream[Symbol.asyncIterator]();
    while (events !== undefined) {
      const next = await untilAborted(events.next(), watch);
      if (next === ABORTED || next.done === true) break;
      const event = next.value;
      if (event.type === "done") {
        // Some servers cut an input that is too large in silence, and then write nothing.
        const cut = !progress.begun && isContextOverflow(event.message, model.settings.contextWindow);
        if (cut) return failed(model, seen, progress, event.message, undefined);
        return { kind: "message", message: written(world, model, event.message, progress) };
      }
      if (event.type === "error") {
        if (signal.aborted) break;
        return failed(model, seen, progress, event.error, partialOf(world, model, event.error, progress));
      }
      progress.take(event);
      const error = progress.over(request.limits);
      if (error !== undefined) return tooLarge(world, model, progress, error);
    }
    const last = progress.last;
    const partial = last === undefined ? undefined : partialOf(world, model, last, progress);
    if (signal.aborted) return { kind: "aborted", ...(partial === undefined ? {} : { partial }) };
    const passed = progress.over(request.limits);
    if (passed !== undefined) return tooLarge(world, model, progress, passed);
    const setting = `models.providers.${model.provider.id}.idleTimeoutSeconds`;
    const error = `no byte came for ${model.provider.idleTimeoutSeconds} s (${setting}): connection closed`;
    return failed(model, seen, progress, { errorMessage: error }, partial);
  } finally {
    silence.end();
    stop.abort(OVER);
  }
}

async function open(model: ProviderModel, request: ModelRequest, watched: Watched, signal: AbortSignal) {
  const { provider } = model;
  const known = await piModel(model);
  const messages = piMessages(modelView(request.entries, model), request.system, piTools(request.tools));
  const own = watchedFetch(outgoingFetch("model", provider.baseUrl, provider), watched);
  // Google's client takes no fetch of ours and calls the global one.
  const isGoogle = provider.api === "google-generative-ai";
  const stream = () =>
    STREAMS[provider.api].streamSimple(known, messages, {
      ...apiKeyFor(model),
      // Where these carry the key, the clients ask for them here and not in the model.
      headers: { ...provider.headers },
      signal,
      maxRetries: 0,
      cacheRetention: "short",
      sessionId: request.sessionId,
      ...(request.thinking === "off" || !model.settings.reasoning ? {} : { reasoning: request.thinking }),
      ...(isGoogle ? {} : { fetch: own }),
    });
  return isGoogle ? withFetch(own, stream) : stream();
}

/** Local servers need no key, but the clients insist on one; headers of one's own may carry it instead. */
function apiKeyFor({ provider }: ProviderModel): { apiKey?: string } {
  if (provider.apiKey !== undefined && provider.apiKey !== "") return { apiKey: provider.apiKey };
  const names = Object.keys(provider.headers).map((name) => name.toLowerCase());
  const brings = names.includes("authorization") || names.includes("x-api-key");
  return brings && provider.api !== "google-generative-ai" ? {} : { apiKey: "none" };
}

function watchSilence(
  world: World,
  silenceMaxMs: number,
  onSilence: () => void,
): { heard(): void; end(): void } {
  let heardAt = world.clock.now();
  const arm = () =>
    world.clock.at(heardAt + silenceMaxMs, () => {
      if (world.clock.now() - heardAt >= silenceMaxMs) onSilence();
      else timer = arm();
    });
  let timer = arm();
  return {
    heard: () => {
      heardAt = world.clock.now();
    },
    end: () => timer.cancel(),
  };
}

type StreamEvent = { type: string; contentIndex?: number; delta?: string; partial?: PiMessage };

/** What the stream has brought so far: text for the listener, and tool arguments as they were written. */
class Progress {
  begun = false;
  last: PiMessage | undefined;
  readonly rawArguments = new Map<number, string>();
  readonly #onText: (delta: TextDelta) => void;
  #bytes = 0;
  /** What came since the last event, and is no event so far. */
  #rawBytes = 0;
  #toolCalls = 0;
  #textLength = 0;
  #flatLength = 0;
  /** The block of the message that the last text belongs to. */
  #textBlock: number | undefined;

  constructor(onText: (delta: TextDelta) => void) {
    this.#onText = onText;
  }

  /** Takes bytes off the wire. True: they are more than an answer may have, and say nothing. */
  heard(bytes: number, { maxAnswerBytes }: ModelRequest["limits"]): boolean {
    this.#rawBytes += bytes;
    return this.#rawBytes > maxAnswerBytes + RAW_BYTES_ANYWAY;
  }

  /** Which limit is passed, in words. */
  over({ maxAnswerBytes, maxAnswerToolCalls }: ModelRequest["limits"]): string | undefined {
    const passed = (what: string, setting: string): string =>
      `the model's answer has more than ${what} (agents.defaults.${setting}, or the agent's own). ` +
      "The text that had come is kept. Ask for less at once, or raise that setting";
    if (this.#bytes > maxAnswerBytes || this.heard(0, { maxAnswerBytes, maxAnswerToolCalls }))
      return passed(`${maxAnswerBytes} bytes`, "maxAnswerBytes");
    if (this.#toolCalls <= maxAnswerToolCalls) return undefined;
    return passed(`${maxAnswerToolCalls} tool calls`, "maxAnswerToolCalls");
  }

  take(event: StreamEvent): void {
    if (event.partial !== undefined) this.last = event.partial;
    this.#rawBytes = 0;
    if (event.delta !== undefined) this.#bytes += Buffer.byteLength(event.delta);
    if (event.type === "toolcall_start") this.#toolCalls += 1;
    if (event.type === "text_delta" && event.contentIndex !== undefined && event.delta !== undefined) {
      if (event.delta === "") return;
      // `partial` runs ahead of the events in the queue, so the text is put together from the deltas.
      const isNext = this.#textBlock !== undefined && this.#textBlock !== event.contentIndex;
      const text = isNext ? `\n${event.delta}` : event.delta;
      this.#textBlock = event.contentIndex;
      this.begun = true;
      this.#onText({ offset: this.#textLength, text });
      this.#textLength += text.length;
      const block = this.last?.content[event.contentIndex];
      if (block?.type === "text" && this.#textLength > this.#flatLength + FLAT_EVERY_CHARS) {
        this.#flatLength = this.#textLength;
        block.text = flat(block.text);
      }
    }
    if (event.type.startsWith("toolcall_")) this.begun = true;
    if (event.type === "toolcall_delta" && event.contentIndex !== undefined) {
      const before = this.rawArguments.get(event.contentIndex) ?? "";
      this.rawArguments.set(event.contentIndex, before + (event.delta ?? ""));
    }
  }
}

/** The call ends here: what a person may have seen is kept, and no call of a tool is made. */
function tooLarge(world: World, model: ProviderModel, progress: Progress, error: string): RequestOutcome {
  const { last } = progress;
  const partial = last === undefined ? undefined : partialOf(world, model, last, progress);
  if (partial === undefined) return { kind: "too large", error };
  const named = { stopReason: "error", errorMessage: error, errorCode: "answer_too_large" } as const;
  return { kind: "too large", error, partial: { ...partial, ...named } };
}

function textSoFar(message: PiMessage | undefined): string {
  const texts = message?.content.flatMap((block) => (block.type === "text" ? [block.text] : [])) ?? [];
  return texts.join("\n");
}

function written(world: World, model: ProviderModel, message: PiMessage, progress: Progress): WrittenMessage {
  return {
    role: "assistant",
    content: message.content.flatMap((block, at) => {
      const isEmpty = block.type === "text" && block.text === "" && block.textSignature === undefined;
      return isEmpty ? [] : [contentBlock(block, progress.rawArguments.get(at))];
    }),
    timestamp: world.clock.now(),
    api: model.provider.api,
    provider: model.provider.id,
    model: model.settings.id,
    usage: plainUsage(message.usage),
    stopReason: message.stopReason,
  };
}

type PiBlock = PiMessage["content"][number];

function contentBlock(block: PiBlock, raw: string | undefined): AssistantMessage["content"][number] {
  if (block.type === "text") {
    const { text, textSignature } = block;
    return { type: "text", text, ...(textSignature === undefined ? {} : { textSignature }) };
  }
  if (block.type === "thinking") {
    const { thinking, thinkingSignature, redacted } = block;
    return {
      type: "thinking",
      thinking,
      ...(thinkingSignature === undefined ? {} : { thinkingSignature }),
      ...(redacted === undefined ? {} : { redacted }),
    };
  }
  const { id, name, thoughtSignature } = block;
  return {
    type: "toolCall",
    id,
    name,
    arguments: readArguments(raw) ?? block.arguments,
    ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
  };
}

/** Undefined: they read as a JSON object, or nothing was streamed and the client's own value holds. */
function readArguments(raw: string | undefined): Record<string, unknown> | undefined {
  if (raw === undefined || raw.trim() === "") return undefined;
  return isObject(jsonOf(raw)) ? undefined : { [UNREADABLE_ARGUMENTS]: raw };
}

/** Local servers report what they like: whatever is no amount counts as none. */
function amount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

function plainUsage(usage: Usage): Usage {
  const input = amount(usage.input);
  const output = amount(usage.output);
  const cacheRead = amount(usage.cacheRead);
  const cacheWrite = amount(usage.cacheWrite);
  const { cost } = usage;
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    totalTokens: amount(usage.totalTokens) || input + output + cacheRead + cacheWrite,
    cost: {
      input: amount(cost.input),
      output: amount(cost.output),
      cacheRead: amount(cost.cacheRead),
      cacheWrite: amount(cost.cacheWrite),
      total: amount(cost.total),
    },
  };
}

/** What a person may have seen of a message that was never finished: its text, without the calls. */
function partialOf(
  world: World,
  model: ProviderModel,
  message: PiMessage,
  progress: Progress,
): WrittenMessage | undefined {
  if (textSoFar(message).trim() === "") return undefined;
  const whole = written(world, model, message, progress);
  const content = whole.content.filter((block) => block.type === "text");
  const errorMessage = message.errorMessage;
  const stopReason = message.stopReason === "error" ? "error" : "aborted";
  return { ...whole, content, stopReason, ...(errorMessage === undefined ? {} : { errorMessage }) };
}

function failed(
  model: ProviderModel,
  seen: Seen,
  progress: Progress,
  end: Partial<PiMessage> & { errorMessage?: string },
  partial: WrittenMessage | undefined,
): RequestOutcome {
  const text = end.errorMessage ?? `stopped with ${end.stopReason ?? "no reason"}`;
  const { provider } = model;
  const status = seen.status ?? statusInText(text);
  const words = withoutKeys(wordsFor(model, seen, progress, text), provider);
  const error = `${model.ref}: ${words}`.slice(0, ERROR_CHARS_MAX);
  const judged = { role: "assistant", stopReason: "error", ...end, errorMessage: text } as PiMessage;
  const failure: RequestFailure = {
    error,
    raw: text,
    ...(status === undefined ? {} : { status }),
    ...(seen.headers === undefined ? {} : { headers: seen.headers }),
    begun: progress.begun,
    overflow: isContextOverflow(judged, model.settings.contextWindow),
    passing: isRetryableAssistantError({ ...judged, stopReason: "error" }),
  };
  const named = partial === undefined ? undefined : { ...partial, stopReason: "error", errorMessage: error };
  return { kind: "failed", failure, ...(named === undefined ? {} : { partial: named }) };
}

/** An error as a sentence: the provider's own message without the JSON around it. */
function wordsFor({ provider }: ProviderModel, seen: Seen, progress: Progress, text: string): string {
  if (seen.redirectedTo !== undefined) {
    const advice = `Set models.providers.${provider.id}.baseUrl to the final address`;
    return `${provider.baseUrl} redirects to ${seen.redirectedTo}, and redirects are refused. ${advice}`;
  }
  if (seen.notConnected === true) {
    const { id, baseUrl, connectTimeoutSeconds } = provider;
    const setting = `models.providers.${id}.connectTimeoutSeconds`;
    return `${baseUrl} accepted no connection within ${connectTimeoutSeconds} s (${setting})`;
  }
  const status = seen.status ?? statusInText(text);
  const message = messageIn(text);
  if (message !== undefined) return `the provider says: ${message} (HTTP ${status ?? "status unknown"})`;
  if (status === undefined) return `no answer from ${provider.baseUrl}: ${text}`;
  const isCut = CUT.test(text.trim());
  if (!progress.begun) return isCut ? "the connection was closed before the answer began" : text;
  return `the answer broke off before its end${isCut ? "" : ` (${text})`}. Send another message to go on`;
}

/** The message of an error that is JSON, with or without a status before it. */
function messageIn(text: string): string | undefined {
  const start = text.indexOf("{");
  if (start === -1 || start > STATUS_CHARS_MAX) return undefined;
  const body = jsonOf(text.slice(start));
  const inner = isObject(body) && isObject(body.error) ? body.error : body;
  const message = isObject(inner) ? inner.message : undefined;
  if (typeof message !== "string" || message.trim() === "") return undefined;
  return messageIn(message) ?? message.trim();
}

/** Google's client reports a refusal as the JSON body only. */
function statusInText(text: string): number | undefined {
  const found = /^\s*\{\s*"error"\s*:\s*\{[\s\S]*?"code"\s*:\s*(\d{3})\b/.exec(text);
  return found?.[1] === undefined ? undefined : Number(found[1]);
}

const KEY_CHARS_MIN = 8;
const KEY_HEADER = /auth|key|token|secret|cookie/i;

/** A provider may quote the key that it refuses. */
function withoutKeys(text: string, { apiKey = "", headers }: ProviderModel["provider"]): string {
  const inHeaders = Object.entries(headers)
    .filter(([name]) => KEY_HEADER.test(name))
    .map(([, value]) => value.trim().replace(/^\w+\s+/, ""));
  return [apiKey, ...inHeaders]
    .filter((key) => key.length >= KEY_CHARS_MIN)
    .reduce((masked, key) => masked.replaceAll(key, "***"), text);
}
