// Owns one connection to an MCP server: handshake, tool list, calls, and the classification of failures. An
// unfinished call is `unsent` if it had no effect, or `lost` if it may have had one.
// - A server gets no access to models or files, and reaches people only during a call (asking.ts).
// - Before revision 2026-07-28 a question does not name its call. It is asked only if all calls that the
//   server may be working on are of one session. A call that was given up counts until the connection ends.

import type {
  Client,
  CreateMessageResult,
  ElicitResult,
  PriorDiscovery,
  RequestOptions,
  StandardSchemaV1,
} from "@modelcontextprotocol/client";
import { type Fields, fieldsOf, isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { McpServerSettings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { connectionCause } from "../../world/outgoing.ts";
import { pause } from "../../world/pause.ts";
import type { Asker } from "./asking.ts";
import { type Definition, type Definitions, readDefinitions } from "./definitions.ts";
import { BROKEN, INTERNAL_ERROR, TOO_LARGE, takeBack } from "./frames.ts";
import { ownNames } from "./names.ts";
import { type Asking, addedTools, answerAdded, LISTS } from "./resources.ts";
import { needOf, wantsSignIn } from "./sign-in/sign-in.ts";
import { machineFailure } from "./start-failure.ts";
import type { Link, OutsideWorld } from "./transport.ts";

/** Delay after which a program gets the older handshake: an older one may ignore the newest. */
const PROBE_MS = 3_000;
/** Disables the library's timers, because tests control only Parley's own. */
const NEVER_MS = 2 ** 31 - 1;
const PAGES_MAX = 50;
const LISTED_MAX = 2_000;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
/** The code with which a person's refusal of sampling is reported. */
const REJECTED = -1;
/** Pause before a repetition that answers nothing: the server only wants to be asked later. */
const AGAIN_MS = 250;
/** Maximum number of questions during one call, and of answers that ask for more input. */
const QUESTIONS_MAX = 10;

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

/** Reports a refused question to the server. */
class Refusal extends Error {
  readonly code: number;
  constructor(code: number, text: string) {
    super(text);
    this.code = code;
  }
}

interface OpenCall {
  readonly runId: string | undefined;
  /** Asks a person, or the model. Meanwhile the time of the call does not pass. */
  ask(method: string, params: Fields, signal: AbortSignal): Promise<object>;
  /** Ends the call if another process has the run by now. */
  mayRepeat(): Promise<void>;
}

/** The rights of a call: when it has to end, who is asked, and whether its run is still of this process. */
interface CallRights {
  readonly signal: AbortSignal;
  readonly asker?: Asker | undefined;
  mayAct(): Promise<boolean>;
}

export class Connection {
  readonly #client: Client;
  readonly #link: Link;
  readonly #settings: McpServerSettings;
  readonly #world: OutsideWorld;
  readonly #calls = new Set<OpenCall>();
  /** The runs of the calls that were given up. The server may still be working on them. */
  readonly #abandoned = new Set<string | undefined>();
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
        capabilities: {
          elicitation: { form: {}, url: {} },
          ...(settings.sampling ? { sampling: {} } : {}),
        },
        inputRequired: { autoFulfill: false },
        // Resources are listed when a model asks for them.
        listChanged: { tools: onListChanged, prompts: onListChanged },
      },
    );
    const connection = new Connection(client, link, settings, world);
    const callThatAsks = (): OpenCall | undefined => {
      const open = [...connection.#calls];
      const runs = new Set([...connection.#abandoned, ...open.map(({ runId }) => runId)]);
      if (runs.size === 1 && open.length === 1) return open[0];
      world.log.warn({ server: settings.name }, "an MCP server asks, and it is not clear for which call");
      return undefined;
    };
    client.setRequestHandler("elicitation/create", async ({ method, params }, { mcpReq }) => {
      const asked = callThatAsks()?.ask(method, params, mcpReq.signal);
      return ((await asked) ?? { action: "cancel" }) as ElicitResult;
    });
    if (settings.sampling)
      client.setRequestHandler("sampling/createMessage", async ({ method, params }, { mcpReq }) => {
        const asked = callThatAsks()?.ask(method, params, mcpReq.signal);
        if (asked === undefined) throw new Refusal(REJECTED, "It is not clear which call asks");
        return (await asked) as CreateMessageResult;
      });
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
    { signal, asker, mayAct }: CallRights,
  ): Promise<CallEnd> {
    const { timeoutSeconds } = this.#settings;
    let why: CallEnd = { kind: "aborted" };
    if (signal.aborted) return why;
    const watch = new AbortController();
    const { clock } = this.#world;
    const start = (ms: number) => ({
      endMs: clock.monotonic() + ms,
      timer: clock.after(ms, () => {
        why = { kind: "timeout" };
        watch.abort(`no answer within ${timeoutSeconds} s`);
      }),
    });
    let limit = start(timeoutSeconds * 1_000);
    const onAbort = (): void => watch.abort("the caller stopped waiting");
    signal.addEventListener("abort", onAbort, { once: true });
    const over = new AbortController();
    let asking: Promise<unknown> = Promise.resolve();
    let questions = 0;
    const ask = async (asked: string, params: Fields, withdrawn: AbortSignal): Promise<object> => {
      const isQuestion = asked === "elicitation/create";
      const samples = asked === "sampling/createMessage" && this.#settings.sampling;
      const answerTo = isQuestion ? asker?.elicit : samples ? asker?.sample : undefined;
      if (answerTo === undefined || over.signal.aborted) {
        if (isQuestion) return { action: "cancel" };
        throw new Refusal(METHOD_NOT_FOUND, `it asks for ${quoted(asked, 80)}, which is not possible here`);
      }
      questions += 1;
      if (questions > QUESTIONS_MAX)
        throw new Refusal(INVALID_PARAMS, `a call has at most ${QUESTIONS_MAX} questions`);
      const leftMs = limit.endMs - clock.monotonic();
      limit.timer.cancel();
      try {
        const answer = await answerTo(params, AbortSignal.any([withdrawn, watch.signal, over.signal]));
        if (!answer.ok)
          throw new Refusal(answer.code === "approval_denied" ? REJECTED : INVALID_PARAMS, answer.error);
        return answer.value;
      } finally {
        if (!over.signal.aborted) limit = start(leftMs);
      }
    };
    const open: OpenCall = {
      runId: asker?.runId,
      async mayRepeat() {
        if (!(await mayAct())) watch.abort("another process has the run");
      },
      // One at a time, so that a person sees the questions of a call in their order.
      ask: (asked, params, withdrawn) => {
        const answer = asking.then(() => ask(asked, params, withdrawn));
        asking = answer.catch(() => {});
        return answer;
      },
    };
    this.#calls.add(open);
    try {
      return { kind: "answer", answer: await this.#answer(tool, args, watch.signal, open) };
    } catch (error) {
      if (watch.signal.aborted) {
        this.#abandoned.add(open.runId);
        return why;
      }
      if (needOf(error) !== undefined)
        return { kind: "unsent", error: wantsSignIn(this.#settings.name), link: "same" };
      const failed = machineFailure(error);
      if (failed !== undefined) return { kind: "unsent", error: failed.message, link: "same" };
      const end = endOfFailure(error);
      if (end.kind === "lost") this.#abandoned.add(open.runId);
      return end.kind === "refused" && tool.method !== undefined ? { ...end, mayHaveRun: false } : end;
    } finally {
      this.#calls.delete(open);
      over.abort();
      limit.timer.cancel();
      signal.removeEventListener("abort", onAbort);
      // The run has its slot again after this.
      await asking;
    }
  }

  async #answer(
    { ownName, inputSchema, renamed, method }: Definition,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    call: OpenCall,
  ): Promise<Readonly<Record<string, unknown>>> {
    const options = { signal, timeout: NEVER_MS, allowInputRequired: true };
    if (method !== undefined)
      return answerAdded(method, args, {
        list: (listed) => this.#pages(listed, signal),
        ask: async (asked, params, field) =>
          takeBack(
            await this.#untilComplete({ ...params }, call, signal, (given) =>
              this.#client.request({ method: asked, params: given }, AS_IT_IS, options),
            ),
            field,
          ),
      });
    const params = { name: ownName, arguments: ownNames(args, renamed) as Record<string, unknown> };
    // The output schema is omitted, so that the library passes the answer on without checking it against the
    // schema.
    const toolDefinition = { name: ownName, inputSchema: inputSchema as { type: "object" } };
    const answer = await this.#untilComplete(params, call, signal, (given) =>
      this.#client.callTool(given, { ...options, toolDefinition } as RequestOptions),
    );
    return { ...(answer as object), content: takeBack(answer, "content") };
  }

  /** Sends a request, and repeats it with people's answers while the server asks for more input. */
  async #untilComplete<P extends Fields>(
    params: P,
    call: OpenCall,
    signal: AbortSignal,
    send: (params: P) => Promise<unknown>,
  ): Promise<unknown> {
    let given = params;
    for (let round = 0; round <= QUESTIONS_MAX; round++) {
      const answer = await send(given);
      if (!isObject(answer) || answer.resultType !== "input_required") return answer;
      const inputResponses: Record<string, unknown> = {};
      for (const [key, request] of Object.entries(fieldsOf(answer.inputRequests))) {
        const { method, params: asked } = fieldsOf(request);
        inputResponses[key] = await call.ask(String(method), fieldsOf(asked), signal);
      }
      if (Object.keys(inputResponses).length === 0) await pause(this.#world.clock, AGAIN_MS, signal);
      await call.mayRepeat();
      signal.throwIfAborted();
      const { requestState } = answer;
      given = {
        ...params,
        ...(Object.keys(inputResponses).length === 0 ? {} : { inputResponses }),
        ...optional({ requestState }),
      };
    }
    throw new Refusal(INVALID_PARAMS, `it asked for more input after ${QUESTIONS_MAX} rounds`);
  }
}
