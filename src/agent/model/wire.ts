// Makes the HTTP request of a model call: sends the body and passes the events of the answer to a reader. A
// redirect is an error. Reading yields to other work after some milliseconds. Every expected failure is a
// `WireError`; any other error is a bug.

import { fieldsOf } from "../../core/json.ts";
import { liveIntervalMs } from "../../core/live-interval.ts";
import { optional } from "../../core/optional.ts";
import { createPaces } from "../../core/pace.ts";
import type { AnswerFormat } from "../../core/shapes/run.ts";
import type { ProviderApi } from "../../core/shapes/settings/settings.ts";
import { isConnectTimeout } from "../../world/outgoing.ts";
import { type AnswerHeaders, outgoingPost, type StreamedAnswer } from "../../world/outgoing-stream.ts";
import type { World } from "../../world.ts";
import type { Answer } from "./answer.ts";
import type { ModelRequest, ResolvedModel } from "./model.ts";
import { EventReader, type ServerEvent } from "./sse.ts";

export type ProviderModel = Extract<ResolvedModel, { kind: "provider" }>;

/** Facts about the HTTP response, for error messages. */
export interface Seen {
  status?: number;
  headers?: AnswerHeaders;
  /** Origin of a refused redirect's target. */
  redirectedTo?: string;
  /** True if no connection was made in time. */
  notConnected?: boolean;
}

/** One attempt of a model request. Each client gets it as its argument. */
export interface Call {
  readonly world: Pick<World, "clock" | "gather">;
  readonly model: ProviderModel;
  readonly request: ModelRequest;
  readonly answer: Answer;
  readonly seen: Seen;
  readonly signal: AbortSignal;
  /** Counts received bytes; may abort the signal. */
  heard(bytes: number): void;
}

/** Fills the answer of the call. Rejects with a `WireError` if the request failed. */
export type Client = (call: Call) => Promise<void>;

export class WireError extends Error {}

const JSON_TYPE = { "content-type": "application/json" };

/** Builds the request of a call in the format of one API, and a reader of the answer. */
export type Format = (model: ProviderModel, request: ModelRequest, answer: Answer) => Promise<Wire>;

interface Wire {
  /** Path after the provider's base URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The request, without its tools. */
  readonly body: object;
  /** The JSON of each tool. If absent, the request has no field for tools. */
  readonly tools?: readonly string[];
  readonly reader: AnswerReader;
}

export interface AnswerReader {
  /** Reads one event. Returns true if it is the last one. */
  take(event: ServerEvent): boolean;
  /** Checks that the answer is complete. */
  end(): void;
}

/** If a read waited at least this long, other work has had time to run, so the next pause is due later. */
const TURN_MS = 1;
const ERROR_BYTES_MAX = 64 * 1024;
export function wireClient(format: Format): Client {
  let reading = 0;
  return async (call) => {
    const { model, request, answer, signal } = call;
    const plain = await format(model, request, answer);
    const wire = { ...plain, body: withFormat(model.provider.api, plain.body, request.format) };
    if (signal.aborted) return;
    const response = await send(call, wire);
    reading += 1;
    try {
      if (await readEvents(call, response, wire.reader, () => liveIntervalMs(reading))) wire.reader.end();
    } finally {
      reading -= 1;
      response.leave();
    }
  };
}

/**
 * Returns the key to send. Some local servers need one although they do not check it. The settings may
 * contain it as a header instead.
 */
export function keyFor({ apiKey, headers }: ProviderModel["provider"]): string | undefined {
  if (apiKey !== undefined && apiKey !== "") return apiKey;
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  return names.includes("authorization") || names.includes("x-api-key") ? undefined : "none";
}

function urlOf(baseUrl: string, path: string): string {
  const url = new URL(baseUrl);
  const [pathname = "", search = ""] = path.split("?");
  url.pathname = url.pathname.replace(/\/$/, "") + pathname;
  url.search = [url.search.slice(1), search].filter((part) => part !== "").join("&");
  return url.href;
}

function textOf({ body, tools }: Wire): string {
  const text = JSON.stringify(body);
  return tools === undefined ? text : `${text.slice(0, -1)},"tools":[${tools.join()}]}`;
}

async function send({ world, model, seen, signal, heard }: Call, wire: Wire): Promise<StreamedAnswer> {
  const { provider } = model;
  const headers: Record<string, string> = { ...wire.headers };
  for (const [name, value] of Object.entries(provider.headers)) headers[name.toLowerCase()] = value;
  const post = {
    purpose: "model",
    url: urlOf(provider.baseUrl, wire.path),
    configured: provider.baseUrl,
    headers: {
      "user-agent": "parley",
      accept: "text/event-stream, application/json",
      ...JSON_TYPE,
      ...headers,
    },
    body: textOf(wire),
    limits: provider,
  } as const;
  const response = await outgoingPost(post, signal, world.clock).catch((error: unknown) => {
    seen.notConnected = isConnectTimeout(error);
    throw wireError(error);
  });
  heard(0);
  const { status } = response;
  seen.status = status;
  seen.headers = response.headers;
  if (status >= 200 && status < 300) return response;
  if (status >= 300 && status < 400) seen.redirectedTo = originIn(response.headers, post.url);
  const text = await errorText(response, heard).finally(() => response.leave());
  throw new WireError(text === "" ? `${status} status code (no body)` : `${status} ${text}`);
}

/**
 * Passes all events to the reader. Returns false if a limit or the signal stopped it. `intervalMs`: returns
 * the interval between two reads of an answer with content; the engine does not publish text more often.
 */
async function readEvents(
  { world, model: { provider }, answer, signal, heard }: Call,
  response: StreamedAnswer,
  reader: AnswerReader,
  intervalMs: () => number,
): Promise<boolean> {
  let isModel = false;
  const events = new EventReader();
  const { clock } = world;
  const paceOf = createPaces(world);
  let pace = paceOf("with this step");
  // A copy of `signal.aborted`, because reading that property takes longer than reading some events.
  let isAborted = signal.aborted;
  signal.addEventListener("abort", () => {
    isAborted = true;
  });
  const isStopped = (): boolean => isAborted || answer.over() !== undefined;
  for (;;) {
    const askedAt = clock.monotonic();
    const bytes = await pieceOf(response, answer.hasContent ? intervalMs() : 0);
    if (clock.monotonic() - askedAt >= TURN_MS) pace = paceOf("with this step");
    heard(bytes?.byteLength ?? 0);
    if (bytes === undefined) events.finish();
    else events.feed(bytes);
    try {
      let event = events.next();
      while (event !== undefined && !isStopped()) {
        isModel = true;
        if (reader.take(event)) return !isStopped();
        event = events.next();
        const rest = pace();
        if (rest !== undefined) await rest;
      }
    } finally {
      answer.show();
    }
    if (isStopped()) return false;
    if (bytes !== undefined) continue;
    if (!isModel) checkIsStream(provider, response.headers);
    return true;
  }
}

/** Throws the failure of a server that answers with something else than events, such as a web page. */
function checkIsStream({ id }: ProviderModel["provider"], headers: AnswerHeaders): void {
  const type = headers.get("content-type") ?? "a text without a type";
  if (type.startsWith("text/event-stream")) return;
  const hint = `Check models.providers.${id}.baseUrl: most servers need /v1 at its end.`;
  throw new WireError(`The address answered with ${type} instead of a model's answer. ${hint}`);
}

async function pieceOf(response: StreamedAnswer, collectMs: number): Promise<Uint8Array | undefined> {
  try {
    return await response.read(collectMs);
  } catch (error) {
    throw wireError(error);
  }
}

function wireError(error: unknown): WireError {
  const { message, code } = error as { message?: unknown; code?: unknown };
  const words = [message, code].find((part) => typeof part === "string" && part !== "");
  return new WireError(String(words ?? error), { cause: error });
}

/** Returns the origin of the redirect's target. */
export function originIn(headers: AnswerHeaders, url: string): string {
  const location = headers.get("location") ?? "";
  return URL.canParse(location, url) ? new URL(location, url).origin : "nowhere";
}

/** Reads the beginning of an error's body. */
async function errorText(response: StreamedAnswer, heard: Call["heard"]): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < ERROR_BYTES_MAX) {
    const piece = await response.read().catch(() => undefined);
    if (piece === undefined) break;
    heard(piece.byteLength);
    bytes += piece.byteLength;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString().trim();
}

/** Returns the body with the format. Without a format, the body is returned unchanged. */
export function withFormat(api: ProviderApi, body: object, format: AnswerFormat | undefined): object {
  if (format === undefined) return body;
  const fields = fieldsOf(body);
  const schema = format.type === "json_schema" ? format.schema : undefined;
  switch (api) {
    case "openai-completions":
      return { ...fields, response_format: nested(format) };
    case "openai-responses":
      return { ...fields, text: { ...fieldsOf(fields.text), format } };
    case "anthropic-messages": {
      const config = fieldsOf(fields.output_config);
      return { ...fields, output_config: { ...config, format: { type: format.type, schema } } };
    }
    case "google-generative-ai": {
      const json = { responseMimeType: "application/json", ...optional({ responseJsonSchema: schema }) };
      return { ...fields, config: { ...fieldsOf(fields.config), ...json } };
    }
  }
}

function nested(format: AnswerFormat): object {
  if (format.type === "json_object") return format;
  const { type, ...json_schema } = format;
  return { type, json_schema };
}
