// Owns one connection to an MCP server: handshake, tool list, calls, and the classification of failures. An
// unfinished call is `unsent` if it had no effect, or `lost` if it may have had one. The only request of a
// server that is answered is ping: a server gets no access to models, files or people.

import type { Client, PriorDiscovery, StandardSchemaV1 } from "@modelcontextprotocol/client";
import { isObject } from "../../core/json.ts";
import type { McpServerSettings } from "../../core/shapes/settings/settings.ts";
import { connectionCause } from "../../world/outgoing.ts";
import { type Definition, type Definitions, readDefinitions } from "./definitions.ts";
import { BROKEN, INTERNAL_ERROR, TOO_LARGE, takeBack } from "./frames.ts";
import { ownNames } from "./names.ts";
import { type Asking, addedTools, answerAdded, LISTS } from "./resources.ts";
import { needOf, wantsSignIn } from "./sign-in/sign-in.ts";
import type { Link, OutsideWorld } from "./transport.ts";

/** Delay after which a program gets the older handshake: an older one may ignore the newest. */
const PROBE_MS = 3_000;
/** Disables the library's timers, because tests control only Parley's own. */
const NEVER_MS = 2 ** 31 - 1;
const PAGES_MAX = 50;
const LISTED_MAX = 2_000;
const METHOD_NOT_FOUND = -32601;

/** The outcome of a call. */
export type CallEnd =
  | { readonly kind: "answer"; readonly answer: Readonly<Record<string, unknown>> }
  /**
   * The server or the library refused. `mayHaveRun`: whether the call may have taken effect before the
   * refusal.
   */
  | { readonly kind: "refused"; readonly error: string; readonly mayHaveRun: boolean }
  /**
   * The call had no effect. `link`: keep the connection, open a new one at once, or open a new one after a
   * pause.
   */
  | { readonly kind: "unsent"; readonly error: string; readonly link: "same" | "new" | "pause" }
  | { readonly kind: "lost"; readonly error: string }
  | { readonly kind: "timeout" }
  | { readonly kind: "aborted" };

/** Accepts any result; it is checked later. */
const AS_IT_IS: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "parley", validate: (value) => ({ value }) },
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

interface Thrown {
  readonly code?: unknown;
  readonly data?: unknown;
}

/** Connection errors that mean that the server received nothing. */
const NOT_REACHED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EACCES"];
const UNCONNECTED = /^(Not connected|the program is not running|the program does not read)/;

/** Returns the outcome of a failed call. */
function endOfFailure(error: unknown): CallEnd {
  const { code, data } = (typeof error === "object" && error !== null ? error : {}) as Thrown;
  const text = textOf(error);
  const status = isObject(data) && typeof data.status === "number" ? data.status : undefined;
  if (data === TOO_LARGE || /^the (answer|JSON) has more than/.test(text))
    return { kind: "refused", error: `${text}, and was dropped`, mayHaveRun: true };
  if (data === BROKEN || code === "CONNECTION_CLOSED") return { kind: "lost", error: text };
  if (typeof code === "number") return { kind: "refused", error: text, mayHaveRun: code === INTERNAL_ERROR };
  if (code === "NOT_CONNECTED" || UNCONNECTED.test(text))
    return { kind: "unsent", error: text, link: "same" };
  // The server has restarted and does not know the session.
  if (status === 404) return { kind: "unsent", error: "it answered 404", link: "new" };
  if (status !== undefined && status < 500)
    return { kind: "unsent", error: `it answered ${status}`, link: "same" };
  if (status !== undefined) return { kind: "lost", error: `it answered ${status}` };
  if (code === "INVALID_RESULT" || code === "UNSUPPORTED_RESULT_TYPE")
    return { kind: "refused", error: `its answer is not a tool result: ${text}`, mayHaveRun: true };
  const cause = connectionCause(error);
  if (cause === undefined) return { kind: "lost", error: text };
  if (NOT_REACHED.includes(cause.split(" ")[0] ?? ""))
    return { kind: "unsent", error: `it is unreachable (${cause})`, link: "pause" };
  return { kind: "lost", error: `the connection failed (${cause})` };
}

export class Connection {
  readonly #client: Client;
  readonly #link: Link;
  readonly #settings: McpServerSettings;
  readonly #world: OutsideWorld;
  /** True after the server has announced a changed list. */
  listIsOld = false;

  private constructor(client: Client, link: Link, settings: McpServerSettings, world: OutsideWorld) {
    this.#client = client;
    this.#link = link;
    this.#settings = settings;
    this.#world = world;
  }

  /** Makes the handshake over a new link. On failure, closes the link and rejects. */
  static async open(
    link: Link,
    parts: { settings: McpServerSettings; world: OutsideWorld; version: string; isOld: boolean },
    onClosed: () => void,
  ): Promise<Connection> {
    const { settings, world, version, isOld } = parts;
    const { Client: McpClient } = await import("@modelcontextprotocol/client");
    const onListChanged = {
      autoRefresh: false,
      debounceMs: 0,
      onChanged: () => {
        connection.listIsOld = true;
      },
    };
    const client = new McpClient(
      { name: "parley", version },
      {
        // An address is not asked again, so the time limit of the start applies: it may have a cold start.
        versionNegotiation: {
          mode: "auto",
          probe: { timeoutMs: settings.reach.kind === "http" ? NEVER_MS : PROBE_MS },
        },
        inputRequired: { autoFulfill: false },
        // Resources are listed when a model asks for them.
        listChanged: { tools: onListChanged, prompts: onListChanged },
      },
    );
    const connection = new Connection(client, link, settings, world);
    client.onclose = onClosed;
    client.onerror = (error) => {
      world.log.debug({ server: settings.name, why: error.name }, "an MCP server violates the protocol");
    };
    const prior: { prior?: PriorDiscovery } = isOld ? { prior: { kind: "legacy" } } : {};
    try {
      await client.connect(link, { timeout: NEVER_MS, ...prior });
    } catch (error) {
      void link.close().catch(() => {});
      throw error;
    }
    return connection;
  }

  /** True if the server speaks an older protocol. */
  get isOld(): boolean {
    return this.#client.getProtocolEra() === "legacy";
  }

  lastWords(): string {
    return this.#link.lastWords();
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  /**
   * Reads the list of tools, and adds those for resources and prompts. Rejects if the server returns no list
   * of tools.
   */
  async list(signal: AbortSignal): Promise<Definitions> {
    this.listIsOld = false;
    const announced = this.#client.getServerCapabilities();
    const { entries } = await this.#pages("tools/list", signal);
    const prompts = announced?.prompts === undefined ? [] : await this.#prompts(signal);
    const sendsHeaders = this.#settings.reach.kind === "http" && !this.isOld;
    return readDefinitions(this.#settings, entries, sendsHeaders, addedTools(announced, prompts));
  }

  /** Reads the list of prompts. A server without a usable one still has its tools. */
  async #prompts(signal: AbortSignal): Promise<readonly unknown[]> {
    try {
      return (await this.#pages("prompts/list", signal)).entries;
    } catch (error) {
      const { code } = error as Thrown;
      if (signal.aborted || code === "CONNECTION_CLOSED" || code === "NOT_CONNECTED") throw error;
      this.#world.log.debug(
        { server: this.#settings.name, why: textOf(error) },
        "an MCP server lists no prompts",
      );
      return [];
    }
  }

  /** Reads a list, page by page. It is empty if the server does not know this method. */
  async #pages(method: keyof typeof LISTS, signal: AbortSignal): ReturnType<Asking["list"]> {
    const entries: unknown[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < PAGES_MAX && entries.length < LISTED_MAX; page++) {
      const params = cursor === undefined ? {} : { params: { cursor } };
      const result = await this.#client
        .request({ method, ...params }, AS_IT_IS, { signal, timeout: NEVER_MS })
        .catch((error: unknown) => {
          if ((error as Thrown).code === METHOD_NOT_FOUND) return {};
          throw error;
        });
      const found = takeBack(result, LISTS[method]);
      if (Array.isArray(found)) entries.push(...found.slice(0, LISTED_MAX - entries.length));
      const next = isObject(result) ? result.nextCursor : undefined;
      if (typeof next !== "string" || next === "" || next === cursor) return { entries, isWhole: true };
      cursor = next;
    }
    return { entries, isWhole: false };
  }

  async call(
    tool: Definition,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<CallEnd> {
    const { timeoutSeconds } = this.#settings;
    let why: CallEnd = { kind: "aborted" };
    if (signal.aborted) return why;
    const watch = new AbortController();
    const { clock } = this.#world;
    const timer = clock.after(timeoutSeconds * 1_000, () => {
      why = { kind: "timeout" };
      watch.abort(`no answer within ${timeoutSeconds} s`);
    });
    const onAbort = (): void => watch.abort("the caller stopped waiting");
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return { kind: "answer", answer: await this.#answer(tool, args, watch.signal) };
    } catch (error) {
      if (watch.signal.aborted) return why;
      if (needOf(error) !== undefined)
        return { kind: "unsent", error: wantsSignIn(this.#settings.name), link: "same" };
      const end = endOfFailure(error);
      return end.kind === "refused" && tool.method !== undefined ? { ...end, mayHaveRun: false } : end;
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #answer(
    { ownName, inputSchema, renamed, method }: Definition,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>> {
    const options = { signal, timeout: NEVER_MS };
    if (method !== undefined)
      return answerAdded(method, args, {
        list: (listed) => this.#pages(listed, signal),
        ask: async (asked, params, field) =>
          takeBack(
            await this.#client.request({ method: asked, params: { ...params } }, AS_IT_IS, options),
            field,
          ),
      });
    const answer = await this.#client.callTool(
      { name: ownName, arguments: ownNames(args, renamed) as Record<string, unknown> },
      // The output schema is omitted, so that the library passes the answer on without checking it against
      // the schema.
      { ...options, toolDefinition: { name: ownName, inputSchema: inputSchema as { type: "object" } } },
    );
    return { ...answer, content: takeBack(answer, "content") };
  }
}
