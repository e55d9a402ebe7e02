// Owns `/mcp`: the Model Context Protocol over Streamable HTTP. Host, origin and token of a request were
// checked before.
// No state is kept between requests but the log levels that clients ask for, so any process of a deployment
// may answer any of them. The transport's session id only names the client.
// The number and size of bodies, batches, exchanges and streams is limited; a stream is closed if its reader
// has stopped reading. If the client ends a request, the wait of that request ends, but accepted work
// continues.

import {
  CLIENT_INFO_META_KEY,
  createMcpHandler,
  isJsonContentType,
  PROTOCOL_VERSION_META_KEY,
  type ServerEventBus,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Context } from "hono";
import { fieldsOf, isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { CODES, type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { thrown, wireError } from "../../gateway/answer.ts";
import type { Caller } from "../../gateway/auth.ts";
import type { HttpParts } from "../../gateway/http/http.ts";
import { type Door, type Env, readBody } from "../../gateway/http/request.ts";
import { dataFrame } from "../../gateway/http/run-stream.ts";
import { acceptingAll, asJson, takesStreams } from "./accept.ts";
import { type McpDeps, replyWith } from "./calls.ts";
import {
  askableBy,
  connectionId,
  endConnection,
  identify,
  type McpClient,
  type McpWishes,
} from "./client.ts";
import { INBOX_URI, onInbox } from "./inbox.ts";
import { LogLevels } from "./log-levels.ts";
import { isAnswer, readAskable, takeAnswer, withQuestions } from "./questions.ts";
import { callOfEvent, mayResume, onlyCall, primed, type ResumableCall, resultAgain } from "./resume.ts";
import { buildServer, mayTakeLong, newCallId } from "./server.ts";
import { type Exchange, Exchanges } from "./streams.ts";

/**
 * Maximum bytes of a body: 256 KB for a message and 5 MiB for the files of a sub-agent, both longer as JSON.
 */
const BODY_MAX_BYTES = 8 * 1024 * 1024;
/** Maximum messages of one body. Only clients of older MCP revisions send more than one. */
const BATCH_MAX = 32;
const KEEP_ALIVE_MS = 15_000;
const METHODS = ["POST", "GET", "DELETE"];
const SESSION_HEADER = "mcp-session-id";
/** A request whose answer is a stream without an end. */
const LISTEN = "subscriptions/listen";
/** Names a client's server-to-client stream among its requests. */
const STREAM = "GET";
const JSON_TYPE = { "content-type": "application/json" };

type Rpc = Readonly<Record<string, unknown>>;

/** A parsed body, and the data in it that is needed before the messages are handled. */
interface Body {
  readonly json: unknown;
  readonly messages: readonly Rpc[];
  /** The id of the only request, for the answer to a failure. */
  readonly id?: string | number;
  /** True for newer protocol revisions, in which each request identifies its sender. */
  readonly modern: boolean;
  readonly clientName?: string;
}

/** Creates a protocol error that includes the gateway's own code. */
function refusal(
  failure: Failure,
  redactor: Redactor,
  id: string | number | null = null,
  rpcCode = -32_000,
): Response {
  const { message, details, retryAfterMs } = wireError(failure, redactor);
  const error = { code: rpcCode, message, data: details };
  const headers: Record<string, string> =
    retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
  return Response.json({ jsonrpc: "2.0", id, error }, { status: CODES[failure.code].http, headers });
}

function idOf(message: Rpc): string | number | undefined {
  return typeof message.id === "string" || typeof message.id === "number" ? message.id : undefined;
}

function metaOf({ params }: Rpc): Rpc {
  return isObject(params) && isObject(params._meta) ? params._meta : {};
}

/**
 * Returns the client's own name. Older protocol revisions send it only with `initialize`, newer ones in every
 * message.
 */
function clientNameIn(message: Rpc): string | undefined {
  const params = fieldsOf(message.params);
  const info = message.method === "initialize" ? params.clientInfo : metaOf(message)[CLIENT_INFO_META_KEY];
  if (!isObject(info)) return undefined;
  const { title, name } = info;
  if (typeof title === "string" && title.trim() !== "") return title;
  return typeof name === "string" && name.trim() !== "" ? name : undefined;
}

/** Returns a message without params that are null, which some clients send and the library refuses. */
function withoutNull(message: unknown): unknown {
  if (!isObject(message) || message.params !== null) return message;
  const { params: _, ...rest } = message;
  return rest;
}

function bodyOf(body: unknown): Result<Body> {
  const json = Array.isArray(body) ? body.map(withoutNull) : withoutNull(body);
  const list = Array.isArray(json) ? json : [json];
  if (list.length === 0 || list.length > BATCH_MAX)
    return fail("invalid_argument", `a body must have 1 to ${BATCH_MAX} messages, got ${list.length}`);
  if (!list.every(isObject)) return fail("invalid_argument", "a message must be one JSON object");
  const messages: readonly Rpc[] = list;
  const [first = {}] = messages;
  const id = messages.length === 1 ? idOf(first) : undefined;
  const clientName = messages.map(clientNameIn).find((name) => name !== undefined);
  return ok({
    json,
    messages,
    modern: messages.some((message) => PROTOCOL_VERSION_META_KEY in metaOf(message)),
    ...optional({ id, clientName }),
  });
}

/**
 * Reads the fields that identify the sender, from headers or, for clients that can't set headers, from the
 * query.
 */
function wishesOf(request: Request, clientName: string | undefined): McpWishes {
  const { searchParams } = new URL(request.url);
  const read = (name: string): string | undefined =>
    request.headers.get(`x-parley-${name}`) ?? searchParams.get(name) ?? undefined;
  const [handle, agentId, sessionKey] = [read("handle"), read("agent"), read("session")];
  const known = request.headers.get(SESSION_HEADER) ?? undefined;
  return {
    ...optional({ handle, agentId, sessionKey, connectionId: known, clientName }),
  };
}

async function readMessages(c: Context<Env>): Promise<Result<Body>> {
  const json = await readBody(c, BODY_MAX_BYTES);
  if (!json.ok) return json;
  if (json.value !== undefined) return bodyOf(json.value);
  return fail("invalid_argument", "the body is not valid JSON, or was truncated");
}

/** Copies a request without its body, which was already read. Each of the signals aborts the copy. */
function withoutBody(request: Request, signals: readonly AbortSignal[]): Request {
  const { url, method } = request;
  const headers =
    method === "POST" || takesStreams(request) ? acceptingAll(request.headers) : request.headers;
  return new Request(url, { method, headers, signal: AbortSignal.any([request.signal, ...signals]) });
}

/** Names a client's connection: the ids of its requests are unique there. */
function nameClient(request: Request, caller: Caller, { session }: McpClient): string {
  return `${caller.id} ${request.headers.get(SESSION_HEADER) ?? session.key}`;
}

/** Reports changes of the client's inbox to clients of newer MCP revisions. */
function inboxBus(deps: McpDeps, client: McpClient): ServerEventBus {
  return {
    publish: () => {},
    subscribe: (listener) =>
      onInbox(deps, client, () => listener({ kind: "resource_updated", uri: INBOX_URI })),
  };
}

class McpDoor {
  readonly #deps: McpDeps;
  readonly #stop: AbortSignal;
  readonly #exchanges: Exchanges;
  readonly #levels = new LogLevels();

  constructor({ deps, stop }: HttpParts) {
    this.#deps = deps;
    this.#stop = stop;
    this.#exchanges = new Exchanges(deps.world.clock);
  }

  async answer(c: Context<Env>): Promise<Response> {
    const request = c.req.raw;
    const caller = c.get("caller");
    if (!METHODS.includes(request.method)) {
      const allow = METHODS.join(", ");
      const response = refusal(
        fail("invalid_argument", `/mcp accepts only ${allow}`),
        this.#deps.world.redactor,
      );
      return new Response(response.body, { status: 405, headers: { ...JSON_TYPE, allow } });
    }
    const begun = this.#exchanges.begin(caller.id);
    if (!begun.ok) return refusal(begun, this.#deps.world.redactor);
    const exchange = begun.value;
    request.signal.addEventListener("abort", () => exchange.end(), { once: true });
    try {
      return exchange.until(await this.#serve(c, caller, exchange));
    } catch (error) {
      exchange.end();
      // The client has disconnected, so nobody reads this answer.
      if (request.signal.aborted) return new Response(null, { status: 499 });
      return refusal(
        thrown(this.#deps.world, error, `${request.method} /mcp`),
        this.#deps.world.redactor,
        null,
        -32_603,
      );
    }
  }

  async #serve(c: Context<Env>, caller: Caller, exchange: Exchange): Promise<Response> {
    const request = c.req.raw;
    if (request.method === "POST") return this.#post(c, caller, exchange);
    const client = await identify(this.#deps, caller, wishesOf(request, undefined));
    if (!client.ok) return refusal(client, this.#deps.world.redactor);
    const whose = nameClient(request, caller, client.value);
    if (request.method === "DELETE") {
      // This ends the transport's session. The gateway's session belongs to the client and stays.
      const id = request.headers.get(SESSION_HEADER) ?? undefined;
      const ended = await endConnection(this.#deps, caller, id);
      if (!ended.ok) return refusal(ended, this.#deps.world.redactor);
      this.#exchanges.cancel(whose, STREAM);
      return new Response(null, { status: 204 });
    }
    const call = callOfEvent(request.headers.get("last-event-id"));
    if (call !== undefined) return this.#resume(client.value, call);
    const ended = this.#exchanges.cancellable(exchange, whose, [STREAM]);
    return this.#stream(request, client.value, exchange, AbortSignal.any([this.#stop, ended]));
  }

  /** Answers a client that comes back for the answer to a call, and ends its stream. */
  async #resume(client: McpClient, { callId, requestId }: ResumableCall): Promise<Response> {
    const reply = replyWith(await resultAgain(this.#deps, client, callId));
    const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
    return new Response(dataFrame({ jsonrpc: "2.0", id: requestId, ...reply }), { headers });
  }

  async #post(c: Context<Env>, caller: Caller, exchange: Exchange): Promise<Response> {
    const request = c.req.raw;
    if (!isJsonContentType(request.headers.get("content-type"))) {
      const response = refusal(
        fail("invalid_argument", "content-type must be application/json"),
        this.#deps.world.redactor,
      );
      return new Response(response.body, { status: 415, headers: JSON_TYPE });
    }
    const body = await readMessages(c);
    if (!body.ok)
      return refusal(
        body,
        this.#deps.world.redactor,
        null,
        body.code === "invalid_argument" ? -32_700 : -32_000,
      );
    const { id, json, messages, modern, clientName } = body.value;
    const client = await identify(this.#deps, caller, wishesOf(request, clientName));
    if (!client.ok) return refusal(client, this.#deps.world.redactor, id ?? null);
    const older = modern ? [] : messages;
    const whose = nameClient(request, caller, client.value);
    for (const message of older) this.#cancel(whose, message);
    const ids = older.flatMap((message) => ("method" in message ? (idOf(message) ?? []) : []));
    const cancelled = this.#exchanges.cancellable(exchange, whose, ids);
    const calls = messages.some(({ method }) => method === "tools/call");
    // A tool call is still answered when the gateway stops, so the stop signal does not abort it.
    const ends = calls ? [cancelled] : [cancelled, this.#stop];
    if (older.length > 0 && older.every(isAnswer)) {
      for (const message of older) await takeAnswer(this.#deps, caller, message);
      return new Response(null, { status: 202 });
    }
    const requestId = modern ? undefined : onlyCall(messages);
    const call = requestId === undefined ? undefined : { callId: newCallId(this.#deps), requestId };
    // A long call is answered immediately with a stream that is kept alive. Any other one can still be
    // refused with a status of its own.
    const streams = messages.some((message) => mayTakeLong(client.value, message));
    const how = { parsedBody: json, calls, streams, exchange, ...optional({ callId: call?.callId }) };
    const response = await this.#ask(client.value, withoutBody(request, ends), how);
    if (!takesStreams(request) && !messages.some(({ method }) => method === LISTEN))
      return this.#tellName(await asJson(response, Array.isArray(json)), client.value, messages);
    const named = this.#tellName(response, client.value, messages);
    if (call === undefined) return named;
    const askable = askableBy(request.headers.get(SESSION_HEADER));
    const asking = { deps: this.#deps, client: client.value, callId: call.callId, askable };
    const asked = askable.forms || askable.samples ? withQuestions(named, asking) : named;
    return mayResume(request) ? primed(asked, call) : asked;
  }

  /** Handles a cancellation that comes as a separate request, as in older revisions. */
  #cancel(whose: string, { method, params }: Rpc): void {
    if (method !== "notifications/cancelled" || !isObject(params)) return;
    const { requestId } = params;
    if (typeof requestId === "string" || typeof requestId === "number")
      this.#exchanges.cancel(whose, requestId);
  }

  #ask(
    client: McpClient,
    request: Request,
    how: { parsedBody: unknown; calls: boolean; streams: boolean; exchange: Exchange; callId?: string },
  ): Promise<Response> {
    const deps = this.#deps;
    const { callId, calls, exchange } = how;
    const { atEnd } = exchange;
    const ends = { stop: this.#stop, atEnd, levels: this.#levels, calls, ...optional({ callId }) };
    const handler = createMcpHandler(() => buildServer(deps, client, ends), {
      bus: inboxBus(deps, client),
      keepAliveMs: KEEP_ALIVE_MS,
      maxSubscriptions: 1,
      responseMode: how.streams ? "sse" : "auto",
      onerror: (error) => deps.world.log.debug({ err: error }, "an MCP exchange failed"),
    });
    return handler.fetch(request, { parsedBody: how.parsedBody });
  }

  /** Sends a new client its name. The client repeats the name in each request. */
  #tellName(response: Response, client: McpClient, messages: readonly Rpc[]): Response {
    const first = messages.find(({ method }) => method === "initialize");
    const askable = readAskable(fieldsOf(first?.params).capabilities);
    const name = connectionId(client, this.#deps.world.ids.uuid(), askable);
    if (first === undefined || !response.ok || name === undefined) return response;
    const headers = new Headers(response.headers);
    headers.set(SESSION_HEADER, name);
    return new Response(response.body, { status: response.status, headers });
  }

  /** Opens the server-to-client stream of an older revision. It carries notifications of the inbox. */
  async #stream(
    request: Request,
    client: McpClient,
    exchange: Exchange,
    stop: AbortSignal,
  ): Promise<Response> {
    const ends = { stop, atEnd: exchange.atEnd, levels: this.#levels };
    const { server } = buildServer(this.#deps, client, ends);
    const transport = new WebStandardStreamableHTTPServerTransport({ keepAliveMs: KEEP_ALIVE_MS });
    await server.connect(transport);
    const response = await transport.handleRequest(withoutBody(request, [stop]));
    const unsubscribe = onInbox(this.#deps, client, () => {
      server.sendResourceUpdated({ uri: INBOX_URI }).catch((error: unknown) => {
        this.#deps.world.log.debug({ err: error }, "could not send a notification of an inbox");
      });
    });
    const end = (): void => {
      unsubscribe();
      stop.removeEventListener("abort", end);
      server.close().catch(() => {});
    };
    stop.addEventListener("abort", end, { once: true });
    exchange.atEnd(end);
    return response;
  }
}

/** Creates the handler of /mcp. */
export function createDoor(parts: HttpParts): Door {
  const door = new McpDoor(parts);
  return (c) => door.answer(c);
}
