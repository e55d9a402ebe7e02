// Makes one request to a provider, without retries, in Parley's own message types. Provider code is loaded at
// the first request, never when this file is imported.
// P2: an aborted request settles at once, even if the provider's client ignores the signal.

import { isContextOverflow } from "@earendil-works/pi-ai/utils/overflow";
import { isRetryableAssistantError } from "@earendil-works/pi-ai/utils/retry";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import type { TextDelta } from "../../core/text/text-delta.ts";
import type { Timer, World } from "../../world.ts";
import { untilAborted } from "../loop/abort.ts";
import { Answer } from "./answer.ts";
import { type ProviderModel, RequestError, type Seen } from "./call.ts";
import { messageIn } from "./forms/error-words.ts";
import type { ModelRequest, WrittenMessage } from "./model.ts";
import { callProvider } from "./pi-client.ts";
import type { PiMessage } from "./provider-shapes.ts";
import { judgeRefusal } from "./refusals.ts";
import type { RequestFailure } from "./retry.ts";

/** Maximum characters of a provider's error; the rest is cut. */
const ERROR_CHARS_MAX = 2_000;

export type RequestOutcome =
  | { readonly kind: "message"; readonly message: WrittenMessage }
  | { readonly kind: "aborted"; readonly partial?: WrittenMessage }
  /** The answer exceeded a limit, so reading stopped. */
  | { readonly kind: "too large"; readonly error: string; readonly partial?: WrittenMessage }
  | { readonly kind: "failed"; readonly failure: RequestFailure; readonly partial?: WrittenMessage };

/** The abort reason is created once: without it each abort would create an error with a stack. */
const OVER = new Error("the request has ended");

/** The lowest HTTP status of a refusal. */
const REFUSED_MIN = 400;

/** Messages of HTTP clients for a closed connection. They contain no useful information. */
const CUT = /^(terminated|aborted|other side closed|premature close|socket hang up|UND_ERR_SOCKET)\.?$/i;

/** Makes one attempt. `onText` gets the streamed text. */
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
  const silence = watchSilence(world, model.provider.idleTimeoutSeconds * 1_000, () => stop.abort(OVER));
  const answer = new Answer(request.limits, onText, request.onThinking);
  const heard = (bytes: number): void => {
    silence.heard();
    answer.heard(bytes);
    if (answer.over() !== undefined) stop.abort(OVER);
  };
  const asked: RequestFacts = { world, model, seen, answer };
  try {
    // Loading a provider's code takes time, and an abort must not wait for it.
    const call = { world, model, request, answer, seen, signal: watch, heard };
    const failure = await untilAborted(callProvider(call), watch).then(() => undefined, expectRequestError);
    const partial = partialOf(asked);
    if (signal.aborted) return { kind: "aborted", ...optional({ partial }) };
    const passed = answer.over();
    if (passed !== undefined) {
      // Keeps the visible text and drops tool calls.
      if (partial === undefined) return { kind: "too large", error: passed };
      const named = { stopReason: "error", errorMessage: passed, errorCode: "answer_too_large" } as const;
      return { kind: "too large", error: passed, partial: { ...partial, ...named } };
    }
    if (failure !== undefined) return failedOutcome(asked, seen.words ?? failure.message, partial);
    if (stop.signal.aborted) {
      const setting = `models.providers.${model.provider.id}.idleTimeoutSeconds`;
      const error = `no data for ${model.provider.idleTimeoutSeconds} s (${setting}): connection closed`;
      return failedOutcome(asked, error, partial);
    }
    const message = writtenMessage(asked);
    // Some servers silently cut an input that is too large, and then write nothing.
    const isCut = !answer.begun && isContextOverflow(message as PiMessage, model.settings.contextWindow);
    if (isCut) return failedOutcome(asked, `stopped with ${message.stopReason}`, undefined, "length");
    return { kind: "message", message };
  } finally {
    silence.end();
    stop.abort(OVER);
  }
}

/** Returns the failure of a request. Throws any other error: it is a bug. */
function expectRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  throw error;
}

/** Data about a request, complete once its client has settled. */
interface RequestFacts {
  readonly world: World;
  readonly model: ProviderModel;
  readonly seen: Seen;
  readonly answer: Answer;
}

function watchSilence(
  world: World,
  silenceMaxMs: number,
  onSilence: () => void,
): { heard(): void; end(): void } {
  let heardAt = world.clock.monotonic();
  const leftMs = (): number => heardAt + silenceMaxMs - world.clock.monotonic();
  const arm = (): Timer =>
    world.clock.after(leftMs(), () => {
      if (leftMs() <= 0) onSilence();
      else timer = arm();
    });
  let timer = arm();
  return {
    heard: () => {
      heardAt = world.clock.monotonic();
    },
    end: () => timer.cancel(),
  };
}

function writtenMessage({ world, model, answer }: RequestFacts): WrittenMessage {
  return {
    role: "assistant",
    content: answer.content(),
    timestamp: world.clock.now(),
    api: model.provider.api,
    provider: model.provider.id,
    model: model.settings.id,
    usage: answer.usage,
    stopReason: answer.stopReason ?? "stop",
  };
}

/** Returns the visible part of an unfinished message: its text without the tool calls. */
function partialOf(asked: RequestFacts): WrittenMessage | undefined {
  const content = asked.answer.content(["text"]);
  if (content.every((block) => block.type !== "text" || block.text.trim() === "")) return undefined;
  return { ...writtenMessage(asked), content, stopReason: "aborted" };
}

function failedOutcome(
  { model, seen, answer }: RequestFacts,
  text: string,
  partial: WrittenMessage | undefined,
  refusal = judgeRefusal(seen.status, text),
): RequestOutcome {
  const { provider } = model;
  const status = seen.status;
  const words = withoutKeys(wordsFor(model, seen, answer.begun, text), provider);
  const http = status !== undefined && status >= REFUSED_MIN ? `HTTP ${status}, ` : "";
  // Lists show only the beginning of an error, so the cause comes first.
  const error = `${head(words, ERROR_CHARS_MAX)} (${http}model ${model.ref})`;
  const judged = { role: "assistant", stopReason: "error", errorMessage: text } as PiMessage;
  const failure: RequestFailure = {
    error,
    raw: text,
    ...optional({ status, headers: seen.headers }),
    begun: answer.begun,
    ...optional({ refusal }),
    passing: isRetryableAssistantError(judged),
  };
  const named = partial === undefined ? undefined : { ...partial, stopReason: "error", errorMessage: error };
  return { kind: "failed", failure, ...optional({ partial: named }) };
}

/** Returns an error as one sentence: the provider's message without the surrounding JSON. */
function wordsFor({ provider }: ProviderModel, seen: Seen, hasBegun: boolean, text: string): string {
  if (seen.redirectedTo !== undefined) {
    const advice = `Set models.providers.${provider.id}.baseUrl to the final address`;
    return `${provider.baseUrl} redirects to ${seen.redirectedTo}, and redirects are refused. ${advice}`;
  }
  if (seen.notConnected === true) {
    const { id, baseUrl, connectTimeoutSeconds } = provider;
    const setting = `models.providers.${id}.connectTimeoutSeconds`;
    return `${baseUrl} accepted no connection within ${connectTimeoutSeconds} s (${setting})`;
  }
  const status = seen.status;
  const message = messageIn(text);
  if (message !== undefined) return message;
  if (status === undefined) return `no answer from ${provider.baseUrl}: ${text}`;
  const isCut = CUT.test(text.trim());
  if (!hasBegun) return isCut ? "the connection was closed before the answer began" : text;
  const detail = isCut ? "" : ` (${text})`;
  return `the answer broke off before its end${detail}. Send another message to continue`;
}

const KEY_CHARS_MIN = 8;
const KEY_HEADER = /auth|key|token|secret|cookie/i;

/** Redacts keys in an error, because a provider may quote the key that it refuses. */
function withoutKeys(text: string, { apiKey = "", headers, baseUrl }: ProviderModel["provider"]): string {
  const inAddress = URL.canParse(baseUrl) ? new URL(baseUrl).password : "";
  const inHeaders = Object.entries(headers)
    .filter(([name]) => KEY_HEADER.test(name))
    .map(([, value]) => value.trim().replace(/^\w+\s+/, ""));
  return [apiKey, inAddress, ...inHeaders]
    .filter((key) => key.length >= KEY_CHARS_MIN)
    .reduce((masked, key) => masked.replaceAll(key, "***"), text);
}
