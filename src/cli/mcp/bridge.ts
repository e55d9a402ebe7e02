// Owns MCP over standard input and output: each message goes to the gateway's `/mcp`, each answer comes back
// as a line. What a message means is the gateway's business.
// BR1: standard output has messages and nothing else.
// BR2: every request gets exactly one answer: the gateway's, or an error that says what is known of it.
// BR3: a message is sent again only where it can't have arrived.

import type { Readable } from "node:stream";
import type { Result } from "../../core/errors.ts";
import { isObject, jsonOf } from "../../core/json.ts";
import { outgoingFetch } from "../../world/outgoing.ts";
import { pause } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import { eventData } from "./event-stream.ts";
import { LINE_MAX_BYTES, linesOf } from "./lines.ts";
import type { Upstream } from "./upstream.ts";

/** Requests under way; the rest of the input waits. */
const UNDER_WAY_MAX = 128;
const STREAM_AGAIN_MS = 1_000;
const STREAM_AGAIN_MAX_MS = 30_000;
/** At the end of the input, requests under way have this long. */
const END_GRACE_MS = 2_000;
const PARSE_ERROR = -32_700;
const FAILED = -32_000;
const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
/** Where a newer revision wants a param repeated as a header. */
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
  /** Whom to speak as, behind the address. */
  readonly query: string;
  readonly upstream: Upstream;
  /** Looks for a gateway that does not answer any more. */
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

/** A value that a header can hold. */
function headerText(value: string): string {
  const plain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !value.startsWith("=?base64?");
  return plain ? value : `=?base64?${Buffer.from(value).toString("base64")}?=`;
}

/** What a newer revision wants to read in the headers as well. */
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

function refusedBefore(error: unknown): boolean {
  const cause = (error as { cause?: { code?: unknown } }).cause;
  return cause?.code === "ECONNREFUSED";
}

export class Bridge {
  readonly #parts: BridgeParts;
  #upstream: Upstream;
  readonly #underWay = new Map<string, AbortController>();
  readonly #work = new Set<Promise<void>>();
  /** Requests that are answered when the client has had enough: nobody waits for their end. */
  readonly #streams = new Set<Promise<void>>();
  readonly #ended = new AbortController();
  /** What an older revision agreed on at `initialize`. */
  #agreed: Record<string, string> = {};
  #listens = false;
  #written: Promise<unknown> = Promise.resolve();

  constructor(parts: BridgeParts) {
    this.#parts = parts;
    this.#upstream = parts.upstream;
  }

  /** Until the input ends, or `stop`. */
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
    // Else an input that stays open would keep the process.
    (input as Readable).destroy();
    const { clock } = world;
    const late = Promise.withResolvers<void>();
    const timer = clock.at(clock.now() + END_GRACE_MS, late.resolve, "alive");
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
      this.#parts.note(`a message could not be passed on: ${(error as Error).message}`);
    });
    const set = method === "subscriptions/listen" ? this.#streams : this.#work;
    set.add(work);
    void work.finally(() => set.delete(work));
    if (method === "notifications/initialized" && !this.#listens) {
      this.#listens = true;
      void work.then(() => this.#listen());
    }
  }

  /** Sends a body, and writes what comes back. */
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
      if (!signal.aborted) this.#parts.note(`the gateway could not be asked: ${(error as Error).message}`);
    } finally {
      for (const name of names) if (this.#underWay.get(name) === cancelled) this.#underWay.delete(name);
    }
    if (left.size === 0 || cancelled.signal.aborted) return;
    const text = "the connection to the gateway ended before the answer; what it had accepted goes on";
    this.#fail(
      [...left],
      FAILED,
      `${text}: look with sessions_inbox or sessions_history, don't send it again`,
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
      if (signal.aborted || !refusedBefore(error)) throw error;
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
    // An error that could not name the request is this request's.
    const [only] = left;
    const known =
      left.size === 1 && isObject(answer) && answer.id === null ? { ...answer, id: only } : answer;
    if (isRpc && (left.size > 0 || Array.isArray(answer))) return pass(known);
    const said = isObject(answer) && isObject(answer.error) ? String(answer.error.message) : "";
    const error = `the gateway answered ${response.status}${said === "" ? "" : `: ${said}`}`;
    if (left.size === 0) this.#parts.note(error);
    this.#fail([...left], FAILED, error);
    left.clear();
  }

  /** From the answer to `initialize` on, an older revision names its version and its connection. */
  #agree(response: Response, body: unknown, message: unknown): void {
    if (!isObject(body) || body.method !== "initialize" || !isObject(message)) return;
    const version = isObject(message.result) ? message.result.protocolVersion : undefined;
    const connection = response.headers.get("mcp-session-id");
    this.#agreed = {
      ...(typeof version === "string" ? { "mcp-protocol-version": version } : {}),
      ...(connection === null ? {} : { "mcp-session-id": connection }),
    };
  }

  /** The stream on which a gateway speaks unasked, with older revisions; opened again when it ends. */
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
        // A gateway that refuses the stream refuses it the next time, too; one that stops comes back.
        if (response.status < 500 && !response.ok) return;
        if (response.ok && response.body !== null) {
          againMs = STREAM_AGAIN_MS;
          for await (const data of eventData(response.body)) await this.#write(JSON.parse(data));
        }
      } catch {
        // The messages tell what is wrong with the gateway; here it is only waited for.
      }
      await pause(clock, againMs, signal);
      againMs = Math.min(againMs * 2, STREAM_AGAIN_MAX_MS);
    }
  }

  #fail(ids: readonly (Id | null)[], code: number, message: string): void {
    for (const id of ids) void this.#write({ jsonrpc: "2.0", id, error: { code, message } });
  }

  /** One after the other, as fast as the reader takes them. */
  #write(message: unknown): Promise<unknown> {
    const { output } = this.#parts;
    this.#written = this.#written.then(
      () =>
        new Promise<void>((resolve) => {
          // A reader that is gone ends the input as well; nothing is told to it any more.
          output.write(`${JSON.stringify(message)}\n`, () => resolve());
        }),
    );
    return this.#written;
  }
}
