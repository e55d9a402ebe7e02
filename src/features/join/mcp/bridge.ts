// Bridges MCP over standard input and output to the gateway's `/mcp`: sends each message, and writes each
// answer as one line. Only the gateway interprets the messages.
// Standard output contains nothing but messages. Each request gets exactly one answer: the gateway's, or an
// error that says whether the request may have been executed. A message is sent again only if the gateway
// cannot have received it.

import type { Readable } from "node:stream";
import { isObject, jsonOf } from "../../../core/json.ts";
import type { Result } from "../../../core/shapes/errors.ts";
import { outgoingFetch } from "../../../world/outgoing.ts";
import { pause } from "../../../world/pause.ts";
import type { World } from "../../../world.ts";
import { eventData } from "./event-stream.ts";
import type { Upstream } from "./upstream.ts";

/** Maximum number of requests in progress. At this number, no more input is read until a request ends. */
const UNDER_WAY_MAX = 128;
const STREAM_AGAIN_MS = 1_000;
const STREAM_AGAIN_MAX_MS = 30_000;
/** Time for requests in progress to finish after the end of the input. */
const END_GRACE_MS = 2_000;
const PARSE_ERROR = -32_700;
const FAILED = -32_000;
const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
/** For each method, the parameter whose value newer revisions of MCP repeat in a header. */
const NAME_FROM: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

type Id = string | number;

export interface BridgeParts {
  readonly world: World;
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Query that names the session. It is appended to the gateway's address. */
  readonly query: string;
  readonly upstream: Upstream;
  /** Finds a running gateway again after the gateway has stopped answering. */
  again(): Promise<Result<Upstream>>;
  note(text: string): void;
}

function idsOf(body: unknown): Id[] {
  const messages = Array.isArray(body) ? body : [body];
  return messages.flatMap((message) => {
    if (!isObject(message) || !("method" in message)) return [];
    return typeof message.id === "string" || typeof message.id === "number" ? [message.id] : [];
  });
}

/** Encodes a value so that it is valid in a header. */
function headerText(value: string): string {
  const plain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith("=?base64?");
  return plain ? value : `=?base64?${Buffer.from(value).toString("base64")}?=`;
}

/** Returns the headers that a newer revision of MCP expects. */
function headersFor(body: unknown): Record<string, string> {
  const { method, params } = isObject(body) ? body : {};
  const meta = isObject(params) && isObject(params._meta) ? params._meta : {};
  const version = meta[VERSION_KEY];
  if (typeof method !== "string" || typeof version !== "string") return {};
  const name = isObject(params) ? params[NAME_FROM[method] ?? ""] : undefined;
  return {
    "mcp-protocol-version": headerText(version),
    "mcp-method": headerText(method),
    ...(typeof name === "string" && name !== "" ? { "mcp-name": headerText(name) } : {}),
  };
}

export class Bridge {
  readonly #parts: BridgeParts;
  #upstream: Upstream;
  readonly #underWay = new Map<string, AbortController>();
  readonly #work = new Set<Promise<void>>();
  /** Subscriptions that run for a long time. At the end of the input they are cancelled, not awaited. */
  readonly #streams = new Set<Promise<void>>();
  readonly #ended = new AbortController();
  /** Headers that older revisions of MCP require in each request after `initialize`. */
  #agreed: Record<string, string> = {};
  #listens = false;
  #written: Promise<unknown> = Promise.resolve();

  constructor(parts: BridgeParts) {
    this.#parts = parts;
    this.#upstream = parts.upstream;
  }

  /** Passes messages on until the input ends or `stop` is aborted. */
  async run(stop: AbortSignal): Promise<void> {
    const { input, world } = this.#parts;
    const over = new Promise<void>((resolve) =>
      stop.addEventListener("abort", () => resolve(), { once: true }),
    );
    const read = async (): Promise<void> => {
      for await (const line of linesOf(input)) {
        if (stop.aborted) return;
        this.#take(line);
        while (this.#work.size >= UNDER_WAY_MAX) await Promise.race(this.#work);
      }
    };
    await Promise.race([read(), over]);
    // Close the input, because an open one would keep the process alive.
    (input as Readable).destroy();
    const { clock } = world;
    const late = Promise.withResolvers<void>();
    const timer = clock.after(END_GRACE_MS, late.resolve, "alive");
    await Promise.race([Promise.all(this.#work), late.promise, over]);
    timer.cancel();
    this.#ended.abort();
    await Promise.all([...this.#work, ...this.#streams]);
    await this.#written;
  }

  #take(line: string | undefined): void {
    let body: unknown;
    try {
      if (line === undefined) throw new Error(`a message is longer than ${LINE_MAX_BYTES} bytes`);
      body = JSON.parse(line);
    } catch (error) {
      this.#fail([null], PARSE_ERROR, (error as Error).message);
      return;
    }
    const { method, params } = isObject(body) ? body : {};
    if (method === "notifications/cancelled") {
      const { requestId } = isObject(params) ? params : {};
      this.#underWay.get(`${typeof requestId} ${String(requestId)}`)?.abort();
      return;
    }
    const work = this.#forward(body).catch((error: unknown) => {
      this.#parts.note(`a message could not be forwarded: ${(error as Error).message}`);
    });
    const set = method === "subscriptions/listen" ? this.#streams : this.#work;
    set.add(work);
    void work.finally(() => set.delete(work));
    if (method === "notifications/initialized" && !this.#listens) {
      this.#listens = true;
      void work.then(() => this.#listen());
    }
  }

  /** Sends a message to the gateway and writes the answer. */
  async #forward(body: unknown): Promise<void> {
    const left = new Set<Id | null>(idsOf(body));
    const cancelled = new AbortController();
    const names = [...left].map((id) => `${typeof id} ${String(id)}`);
    for (const name of names) this.#underWay.set(name, cancelled);
    const signal = AbortSignal.any([cancelled.signal, this.#ended.signal]);
    try {
      const response = await this.#post(body, signal);
      if (response instanceof Response) await this.#writeBack(response, body, left);
      else this.#fail([...left], FAILED, response.error);
    } catch (error) {
      if (!signal.aborted) this.#parts.note(`the gateway could not be reached: ${(error as Error).message}`);
    } finally {
      for (const name of names) if (this.#underWay.get(name) === cancelled) this.#underWay.delete(name);
    }
    if (left.size === 0 || cancelled.signal.aborted) return;
    const text = "the connection to the gateway was lost before the answer; accepted work continues";
    this.#fail(
      [...left],
      FAILED,
      `${text}. Do not send it again; check with sessions_inbox or sessions_history.`,
    );
  }

  async #post(body: unknown, signal: AbortSignal): Promise<Response | { error: string }> {
    const send = (to: Upstream): Promise<Response> =>
      outgoingFetch("gateway", to.url)(to.url + this.#parts.query, {
        method: "POST",
        headers: { ...this.#headers(to), ...headersFor(body), "content-type": "application/json" },
        body: JSON.stringify(body),
        signal,
      });
    try {
      return await send(this.#upstream);
    } catch (error) {
      const { cause } = error as { cause?: { code?: unknown } };
      if (signal.aborted || cause?.code !== "ECONNREFUSED") throw error;
      const found = await this.#parts.again();
      if (!found.ok) return { error: [found.error, found.hint ?? ""].join(". ").trim() };
      this.#upstream = found.value;
      return await send(found.value);
    }
  }

  #headers({ token }: Upstream): Record<string, string> {
    return {
      ...this.#agreed,
      accept: "application/json, text/event-stream",
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
    };
  }

  async #writeBack(response: Response, body: unknown, left: Set<Id | null>): Promise<void> {
    const pass = async (message: unknown): Promise<void> => {
      for (const one of Array.isArray(message) ? message : [message]) {
        if (isObject(one) && !("method" in one)) left.delete((one.id ?? null) as Id | null);
      }
      this.#agree(response, body, message);
      await this.#write(message);
    };
    if (response.headers.get("content-type")?.startsWith("text/event-stream") && response.body !== null) {
      for await (const data of eventData(response.body)) await pass(JSON.parse(data));
      return;
    }
    const text = await response.text();
    if (text === "" && response.ok) return;
    const answer = jsonOf(text);
    const isRpc = Array.isArray(answer) || (isObject(answer) && answer.jsonrpc === "2.0");
    // If only one request is unanswered, an error without an id belongs to it.
    const [only] = left;
    const known =
      left.size === 1 && isObject(answer) && answer.id === null ? { ...answer, id: only } : answer;
    if (isRpc && (left.size > 0 || Array.isArray(answer))) return pass(known);
    const reason = isObject(answer) && isObject(answer.error) ? String(answer.error.message) : "";
    const error = `the gateway answered ${response.status}${reason === "" ? "" : `: ${reason}`}`;
    if (left.size === 0) this.#parts.note(error);
    this.#fail([...left], FAILED, error);
    left.clear();
  }

  /**
   * Stores the protocol version and the connection id of the answer to `initialize`. Older revisions of MCP
   * send both in later requests.
   */
  #agree(response: Response, body: unknown, message: unknown): void {
    if (!isObject(body) || body.method !== "initialize" || !isObject(message)) return;
    const version = isObject(message.result) ? message.result.protocolVersion : undefined;
    const connection = response.headers.get("mcp-session-id");
    this.#agreed = {
      ...(typeof version === "string" ? { "mcp-protocol-version": version } : {}),
      ...(connection === null ? {} : { "mcp-session-id": connection }),
    };
  }

  /**
   * Reads the stream of messages that the gateway itself initiates, which older revisions of MCP have. Opens
   * the stream again when it ends.
   */
  async #listen(): Promise<void> {
    const { clock } = this.#parts.world;
    const signal = this.#ended.signal;
    let againMs = STREAM_AGAIN_MS;
    while (!signal.aborted) {
      try {
        const { url } = this.#upstream;
        const headers = this.#headers(this.#upstream);
        const ask = outgoingFetch("gateway", url);
        const response = await ask(url + this.#parts.query, { headers, signal });
        // A refusal (4xx) is final. With a 5xx status the gateway is stopping, so try again.
        if (response.status < 500 && !response.ok) return;
        if (response.ok && response.body !== null) {
          againMs = STREAM_AGAIN_MS;
          for await (const data of eventData(response.body)) await this.#write(JSON.parse(data));
        }
      } catch {
        // Ignore a failure of the stream, which is opened again. Only failures of the client's own messages
        // are reported.
      }
      await pause(clock, againMs, signal);
      againMs = Math.min(againMs * 2, STREAM_AGAIN_MAX_MS);
    }
  }

  #fail(ids: readonly (Id | null)[], code: number, message: string): void {
    for (const id of ids) void this.#write({ jsonrpc: "2.0", id, error: { code, message } });
  }

  /**
   * Writes a message after the previous ones. Waits until each is written, so that a slow reader slows the
   * bridge down.
   */
  #write(message: unknown): Promise<unknown> {
    const { output } = this.#parts;
    this.#written = this.#written.then(
      () =>
        new Promise<void>((resolve) => {
          // Ignore write errors: if the client has exited, the input ends, and then the bridge ends.
          output.write(`${JSON.stringify(message)}\n`, () => resolve());
        }),
    );
    return this.#written;
  }
}

const LINE_MAX_BYTES = 8 * 1024 * 1024;

/**
 * Yields each line without its line end, and undefined for a line that exceeds the limit. Skips blank lines.
 */
async function* linesOf(input: NodeJS.ReadableStream): AsyncGenerator<string | undefined> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const take = (): string | undefined => {
    const tooLong = bytes > LINE_MAX_BYTES;
    const text = tooLong ? undefined : Buffer.concat(pieces).toString("utf8").trim();
    pieces = [];
    bytes = 0;
    return text;
  };
  const add = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes > LINE_MAX_BYTES) pieces = [];
    else pieces.push(piece);
  };
  for await (const chunk of input as Readable) {
    let piece = Buffer.from(chunk);
    for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10)) {
      add(piece.subarray(0, at));
      const line = take();
      if (line !== "") yield line;
      piece = piece.subarray(at + 1);
    }
    add(piece);
  }
  const last = take();
  if (last !== "") yield last;
}
