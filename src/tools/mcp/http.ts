// Connects to an MCP server over Streamable HTTP, with the library's transport.
// - If the stream of an answer breaks, the request fails at once, not at its timeout.
// - Every message is limited in bytes and values, in any encoding of the body.
// - When a caller stops waiting, its request releases the connection.

import type {
  FetchLike,
  JSONRPCMessage,
  RequestId,
  StreamableHTTPClientTransport,
  TransportSendOptions,
} from "@modelcontextprotocol/client";
import { isObject } from "../../core/json.ts";
import { JsonMeter, meteredBody } from "../../core/meter.ts";
import { optional } from "../../core/optional.ts";
import { outgoingFetch } from "../../world/outgoing.ts";
import { within } from "../../world/pause.ts";
import { BROKEN, errorAnswer, MESSAGE_MAX_BYTES, putAside } from "./frames.ts";
import { needOf, type SignIn } from "./sign-in/sign-in.ts";
import type { Link, OutsideWorld } from "./transport.ts";

/** Maximum duration of the request that ends a session. */
const GOODBYE_MS = 2_000;

function boundedFetch(inner: FetchLike): FetchLike {
  return async (url, init) => {
    const response = await inner(url, init);
    if (response.body === null) return response;
    const isStream = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
    const meter = new JsonMeter(isStream ? "event" : "body", MESSAGE_MAX_BYTES);
    const { status, statusText, headers } = response;
    return new Response(meteredBody(response.body, meter), { status, statusText, headers });
  };
}

export interface HttpPlan {
  readonly url: string;
  /** Absent: the server gets no tokens. */
  readonly signIn?: SignIn | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly world: OutsideWorld;
}

class HttpLink implements Link {
  readonly #signIn: SignIn | undefined;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly hasPerRequestStream = true;
  readonly #inner: StreamableHTTPClientTransport;
  readonly #world: OutsideWorld;
  /** Requests that are not answered yet. */
  readonly #open = new Map<RequestId, AbortController>();

  constructor(inner: StreamableHTTPClientTransport, { world, signIn }: HttpPlan) {
    this.#inner = inner;
    this.#world = world;
    this.#signIn = signIn;
    inner.onmessage = (message) => {
      if ("id" in message && !("method" in message)) this.#open.delete(message.id as RequestId);
      this.onmessage?.(putAside(message));
    };
    inner.onerror = (error) => this.onerror?.(error);
    inner.onclose = () => this.onclose?.();
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  lastWords(): string {
    return "";
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    if (!("method" in message)) return this.#inner.send(message);
    if ("id" in message) return this.#request(message, message.id, options);
    await this.#inner.send(message);
    if (message.method !== "notifications/cancelled" || !isObject(message.params)) return;
    const id = message.params.requestId as RequestId;
    this.#open.get(id)?.abort();
    this.#open.delete(id);
  }

  async #request(message: JSONRPCMessage, id: RequestId, options: TransportSendOptions): Promise<void> {
    const left = new AbortController();
    this.#open.set(id, left);
    const { requestSignal, headers } = options;
    const gone = requestSignal === undefined ? left.signal : AbortSignal.any([requestSignal, left.signal]);
    try {
      await this.#inner.send(message, {
        ...optional({ headers }),
        requestSignal: gone,
        onRequestStreamEnd: () => {
          if (!this.#open.delete(id)) return;
          const text = "the connection broke before the answer arrived";
          this.onmessage?.(errorAnswer(id, text, BROKEN));
          options.onRequestStreamEnd?.();
        },
      });
    } catch (error) {
      this.#open.delete(id);
      const need = needOf(error);
      if (need?.scope !== undefined) await this.#signIn?.note(need);
      throw error;
    }
  }

  async close(): Promise<void> {
    const told = this.#inner.terminateSession().catch(() => {});
    await within(this.#world.clock, GOODBYE_MS, told);
    for (const left of this.#open.values()) left.abort();
    this.#open.clear();
    await this.#inner.close();
  }
}

/** Loads the MCP library and creates a link that is not connected yet. */
export async function httpLink(plan: HttpPlan): Promise<Link> {
  const { StreamableHTTPClientTransport: Http } = await import("@modelcontextprotocol/client");
  const send = outgoingFetch("mcp", plan.url);
  const inner = new Http(new URL(plan.url), {
    requestInit: { headers: { ...plan.headers } },
    ...optional({ authProvider: plan.signIn?.transport() }),
    onInsufficientScope: "throw",
    fetch: boundedFetch(plan.signIn?.withProofs(send) ?? send),
  });
  return new HttpLink(inner, plan);
}
