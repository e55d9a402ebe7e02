// Owns the protocol with one ACP agent's program: initialisation, its session, prompts and its requests.
// - A request ends with its answer, with the end of the program, or at its time limit.
// - The program is offered no file system and no terminal: it acts with its own rights.
// - Updates outside of a prompt are dropped: replayed history, and late updates of a cancelled turn. Text
//   that comes shortly after the end of a prompt still belongs to its turn. Sub-agents may work on.
// The protocol's library is loaded when the first agent starts.

import type {
  ClientConnection,
  ContentBlock,
  InitializeResponse,
  McpServerHttp,
  McpServerStdio,
  NewSessionResponse,
  PermissionOption,
  PromptResponse,
  RequestPermissionOutcome,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionNotification,
  SessionUpdate,
  ToolCallStatus,
} from "@agentclientprotocol/sdk/unstable";
import { fieldsOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { PermissionDecision } from "../../../core/shapes/permission.ts";
import { head } from "../../../core/text/cut.ts";
import { pause, within } from "../../../world/pause.ts";
import type { World } from "../../../world.ts";
import { modeFor, needsHttpTools, subagentArgument } from "../programs.ts";
import { boundedLines, MESSAGE_MAX_BYTES } from "./lines.ts";
import { isOwnTool } from "./own-tools.ts";
import { type AcpProcess, type AcpProgram, startAcpProcess } from "./process.ts";
import { type ReportEvent, Reports } from "./reports.ts";
import { Subagents } from "./subagents.ts";
import type { AcpTurn } from "./turn.ts";

/** Time limit for initialisation, and again for opening the session: some programs load a lot first. */
const START_MAX_MS = 60_000;
/** Time limit for the connection to the session tools, counted from the session's start. */
const TOOLS_MAX_MS = 30_000;
/** How long a turn waits after the end of its prompt, because some programs send their last text late. */
const LATE_TEXT_MS = 1_000;
/** The updates with which an agent writes further. */
const WRITES: ReadonlySet<string> = new Set(["agent_message_chunk", "agent_thought_chunk", "tool_call"]);
const STRANGER = "an ACP agent sent updates of a session that it has not announced; they are ignored";
const LEFT_OUT = "[too large: this update was left out]";
const AUTH_REQUIRED = -32_000;
const ERROR_MAX_CHARS = 1_000;
const DENIED_MAX_CHARS = 200;

/**
 * Returns the agent's option for a decision. An option that the program remembers is never chosen to allow
 * something: it may cover much more than the request ("touch *"), and Parley could neither list nor undo it.
 */
function outcomeFor(
  decision: PermissionDecision,
  options: readonly PermissionOption[],
): RequestPermissionOutcome {
  const kinds = decision === "allow" ? ["allow_once"] : ["reject_once", "reject_always"];
  const found = kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0];
  return found === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: found.optionId };
}

/** Decides a permission request of an agent. */
export type AskPermission = (
  question: { title: string; kind?: string | undefined; rawInput: unknown },
  signal: AbortSignal,
) => Promise<PermissionDecision>;

/** The MCP server with the session's tools, for one program. */
export interface SessionTools {
  readonly server: McpServerStdio;
  /** The same tools for a program that starts no servers. */
  readonly overHttp: McpServerHttp;
  /** The token in both. It is redacted from the program's output. */
  readonly pass: string;
  /** Resolves when the program has received the list of tools. */
  readonly listed: Promise<void>;
}

/** An agent's answer to a finished prompt. */
export interface AcpAnswer {
  readonly stopReason: PromptResponse["stopReason"];
  readonly usage: PromptResponse["usage"];
  /** Cost of the whole session so far, in USD. */
  readonly totalCost: number | undefined;
  /** Number of tokens in the agent's context. */
  readonly contextTokens: number | undefined;
  /** Titles of the tool calls that were denied. */
  readonly denied: readonly string[];
  /** True if the agent reports that the turn failed, although it ended the prompt normally. */
  readonly hasFailed: boolean;
}

export interface AcpConnection {
  /** The session id of the transcript for which the program works. */
  readonly sessionId: string;
  /** The agent's own id of its session. */
  readonly remoteId: string;
  readonly takesImages: boolean;
  running(): boolean;
  /**
   * Waits until the program has the session's tools. The value is false if the program has not requested them
   * in time.
   */
  toolsListed(): Promise<Result<boolean>>;
  /**
   * Sends a prompt. Never rejects. `turn` gets the agent's updates, `ask` its requests for permission, and
   * `onCall` the tool calls of the agent and its sub-agents. Requests for the session's own tools are granted
   * without `ask`.
   */
  prompt(
    blocks: ContentBlock[],
    turn: AcpTurn,
    ask: AskPermission,
    onCall: (event: ReportEvent) => void,
  ): Promise<Result<AcpAnswer>>;
  /** Asks the agent to end the prompt, and denies its open permission requests. */
  cancel(): Promise<void>;
  kill(): void;
  /** Stops the program. */
  close(): Promise<void>;
}

export interface OpenParts {
  readonly world: World;
  readonly version: string;
  readonly sessionId: string;
  readonly program: AcpProgram;
  readonly sessionTools: () => SessionTools | undefined;
  /** The agent's earlier session for this transcript. */
  readonly remoteId?: string;
  /** Aborts the start; a program that was started is then stopped. */
  readonly signal: AbortSignal;
}

/** The running prompt. */
interface Current {
  readonly turn: AcpTurn;
  readonly ask: AskPermission;
  readonly stop: AbortController;
  readonly denied: string[];
  hasFailed: boolean;
  totalCost: number | undefined;
  contextTokens: number | undefined;
  /** Sum of the usage that the agent's text updates report for each model call. */
  usage: PromptResponse["usage"];
}

const count = (value: unknown): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;

/**
 * Adds the usage in the `_meta` of a text update. The protocol does not define this; some agents report each
 * model call in this way. Other content is ignored.
 */
function withMeta(before: PromptResponse["usage"], meta: unknown): PromptResponse["usage"] {
  const told = (meta as { usage?: unknown } | null | undefined)?.usage;
  if (typeof told !== "object" || told === null) return before;
  const { inputTokens, outputTokens, totalTokens, cachedReadTokens } = told as Record<string, unknown>;
  return {
    inputTokens: count(before?.inputTokens) + count(inputTokens),
    outputTokens: count(before?.outputTokens) + count(outputTokens),
    totalTokens: count(before?.totalTokens) + count(totalTokens),
    cachedReadTokens: count(before?.cachedReadTokens) + count(cachedReadTokens),
  };
}

/**
 * Returns whether Codex reports that its turn failed, or undefined if the update does not say. Codex writes
 * the error as if it were the model's answer.
 */
function statusOf({ _meta }: SessionUpdate): boolean | undefined {
  const { type } = fieldsOf(fieldsOf(fieldsOf(_meta).codex).threadStatus);
  return type === "systemError" ? true : type === "active" ? false : undefined;
}

/**
 * Returns the title of a notice, or Qwen's note that a sub-agent in the background has ended, which it writes
 * as if it were the model's answer.
 */
function noticeOf(update: SessionUpdate): string | undefined {
  if (update.sessionUpdate === "notice") return update.title;
  if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") return undefined;
  const { source } = fieldsOf(update._meta);
  const isNote = source === "background_task_completed" || source === "background_notification";
  return isNote ? update.content.text : undefined;
}

class Connection implements AcpConnection {
  readonly sessionId: string;
  remoteId = "";
  readonly #world: World;
  readonly #process: AcpProcess;
  readonly #link: ClientConnection;
  #hello: InitializeResponse | undefined;
  #tools: SessionTools | undefined;
  #current: Current | undefined;
  readonly #subagents = new Subagents();
  readonly #reports: Reports;
  /** False while the program opens a session, and replays its history. */
  #isOpen = false;
  #hasStrangers = false;

  constructor(
    parts: OpenParts,
    process: AcpProcess,
    connect: (handlers: {
      update(notification: SessionNotification): void;
      permission(request: RequestPermissionRequest): Promise<RequestPermissionResponse>;
    }) => ClientConnection,
  ) {
    this.sessionId = parts.sessionId;
    this.#world = parts.world;
    this.#process = process;
    this.#reports = new Reports(() => this.#world.clock.now());
    this.#link = connect({
      update: (notification) => this.#update(notification),
      permission: (request) => this.#permission(request),
    });
  }

  get takesImages(): boolean {
    return this.#hello?.agentCapabilities?.promptCapabilities?.image === true;
  }

  running(): boolean {
    return this.#process.running() && !this.#link.signal.aborted;
  }

  /** Makes one request while the program starts. Fails on a timeout, or if the program ended. */
  async #ask<T>(what: string, request: Promise<T>): Promise<Result<T>> {
    const { clock } = this.#world;
    const answered = request.then(ok, (error: unknown) => this.#refusal(what, error));
    const first = Promise.race([answered, this.#describeEnd(what)]);
    const late = `${what}: no answer in ${START_MAX_MS / 1000} s`;
    return (await within(clock, START_MAX_MS, first)) ?? fail("run_failed", late);
  }

  async #describeEnd(what: string): Promise<Failure> {
    return fail("run_failed", `${what}: the program ended: ${await this.#process.ended}`);
  }

  async #refusal(what: string, error: unknown): Promise<Failure> {
    // The program's exit explains more than the broken connection.
    if (this.#link.signal.aborted) {
      this.#process.kill();
      return this.#describeEnd(what);
    }
    if ((error as { code?: unknown } | undefined)?.code === AUTH_REQUIRED) {
      const methods = (this.#hello?.authMethods ?? []).map((method) => method.name).join(", ");
      const known = methods === "" ? "" : ` (methods: ${methods})`;
      const text = `${what}: it requires a sign-in${known}. Sign in with its program, or set runtime.env`;
      return fail("run_failed", text);
    }
    const { message, data } = (error ?? {}) as { message?: unknown; data?: unknown };
    const details = typeof data === "object" && data !== null ? Reflect.get(data, "details") : data;
    const more = typeof details === "string" && details !== "" ? ` (${details})` : "";
    const text = `${typeof message === "string" ? message : String(error)}${more}`;
    return fail("run_failed", `${what}: ${head(this.#process.hidden.mask(text), ERROR_MAX_CHARS)}`);
  }

  /** Initialises, then loads the agent's earlier session if possible, else creates a new one. */
  async open(parts: OpenParts, protocolVersion: number): Promise<Result<void>> {
    const { agent } = this.#link;
    const hello = await this.#ask(
      "initialize",
      agent.request("initialize", {
        protocolVersion,
        clientCapabilities: {
          fs: { readTextFile: false, writeTextFile: false },
          terminal: false,
          // Requests notices as separate updates: otherwise the program writes its warnings into the answer.
          session: { notices: {} },
          subagents: {},
        },
        clientInfo: { name: "parley", title: "Parley", version: parts.version },
      }),
    );
    if (!hello.ok) return hello;
    this.#hello = hello.value;
    if (hello.value.protocolVersion !== protocolVersion) {
      const theirs = hello.value.protocolVersion;
      const text = `it speaks version ${theirs} of the protocol; Parley speaks ${protocolVersion}`;
      return fail("run_failed", text);
    }
    if (parts.remoteId === undefined || !(await this.#reopen(parts, parts.remoteId))) {
      const begun = await this.#ask<NewSessionResponse>(
        "session/new",
        agent.request("session/new", this.#sessionOf(parts)),
      );
      if (!begun.ok) return begun;
      this.remoteId = begun.value.sessionId;
    }
    this.#isOpen = true;
    // Known programs ask in one of their modes before they change something.
    const modeId = modeFor(this.#hello?.agentInfo?.name, parts.program.mustAsk);
    if (modeId === undefined) return ok(undefined);
    const params = { sessionId: this.remoteId, modeId };
    const chosen = await this.#ask("session/set_mode", this.#link.agent.request("session/set_mode", params));
    if (chosen.ok || !parts.program.mustAsk) return ok(undefined);
    const text = `${chosen.error}; outside its mode "${modeId}" it acts without asking`;
    return fail("run_failed", `${text}. Update it, or set runtime.permissions to "allow"`);
  }

  #sessionOf({ program, sessionTools }: OpenParts) {
    this.#tools = sessionTools();
    if (this.#tools === undefined) return { cwd: program.cwd, mcpServers: [] };
    const { server, overHttp, pass } = this.#tools;
    this.#process.hidden.learn([pass]);
    const { agentInfo } = this.#hello ?? {};
    const given = needsHttpTools(agentInfo?.name) ? { type: "http" as const, ...overHttp } : server;
    return { cwd: program.cwd, mcpServers: [given] };
  }

  async toolsListed(): Promise<Result<boolean>> {
    if (this.#tools === undefined) return ok(true);
    const { clock } = this.#world;
    const listed = this.#tools.listed.then(() => ok(true));
    const first = Promise.race([listed, this.#describeEnd("while it connected to its tools")]);
    return (await within(clock, TOOLS_MAX_MS, first)) ?? ok(false);
  }

  async #reopen(parts: OpenParts, remoteId: string): Promise<boolean> {
    const { agentCapabilities: can } = this.#hello ?? {};
    const { agent } = this.#link;
    const params = { ...this.#sessionOf(parts), sessionId: remoteId };
    this.remoteId = remoteId;
    const opened =
      can?.sessionCapabilities?.resume != null
        ? await this.#ask("session/resume", agent.request("session/resume", params))
        : can?.loadSession === true
          ? await this.#ask("session/load", agent.request("session/load", params))
          : undefined;
    if (opened?.ok === false) {
      this.#world.log.info({ why: opened.error }, "an ACP agent did not find its earlier session");
    }
    return opened?.ok === true;
  }

  #update({ sessionId, update }: SessionNotification): void {
    const current = this.#current;
    const isKnown = sessionId === this.remoteId || this.#subagents.has(sessionId);
    if (this.#isOpen && isKnown) this.#reports.add(sessionId, update);
    if (this.#isOther(sessionId, update) || current === undefined) return;
    const notice = noticeOf(update);
    if (notice !== undefined) {
      const said = head(this.#process.hidden.mask(notice), ERROR_MAX_CHARS);
      this.#world.log.info({ said }, "notice from an ACP agent");
      return;
    }
    current.hasFailed = statusOf(update) ?? current.hasFailed;
    if (update.sessionUpdate !== "usage_update") {
      const isText = update.sessionUpdate === "agent_message_chunk";
      if (isText) current.usage = withMeta(current.usage, update._meta);
      if (this.#nest(update) !== undefined) return;
      if (WRITES.has(update.sessionUpdate)) this.#subagents.passBy();
      current.turn.update(update);
      return;
    }
    current.contextTokens = update.used;
    if (update.cost?.currency === "USD" && update.cost.amount >= 0) current.totalCost = update.cost.amount;
  }

  /** Returns the name of the sub-agent whose work this update of the agent's own session is. */
  #nest(update: SessionUpdate): string | undefined {
    return this.#subagents.nest(update, subagentArgument(this.#hello?.agentInfo?.name));
  }

  /** Handles an update of or about a sub-agent. Returns whether the update is not one of the agent itself. */
  #isOther(sessionId: string, update: SessionUpdate): boolean {
    const childId = sessionId === this.remoteId ? undefined : sessionId;
    const isKnown = childId === undefined || this.#subagents.has(childId);
    // A replayed history names sub-agents of earlier turns, which the program may use again.
    if (!this.#isOpen && update.sessionUpdate !== "subagent_update") return true;
    if (!isKnown) {
      if (!this.#hasStrangers) this.#world.log.warn({}, STRANGER);
      this.#hasStrangers = true;
      return true;
    }
    if (update.sessionUpdate === "subagent_update") {
      if (update.sessionId !== this.remoteId) this.#subagents.announce(childId, update);
      return true;
    }
    if (childId !== undefined) this.#subagents.update(childId, update);
    return childId !== undefined;
  }

  /** Reports a message that was too long to be read, as the result of its tool call if it has one. */
  leaveOut(message: string): void {
    const [, method] = /"method":\s*"([\w/]{1,60})"/.exec(message) ?? [];
    this.#world.log.warn({ method }, "a message of an ACP agent was too large and was left out");
    const [, sessionId = this.remoteId] = /"sessionId":\s*"([^"\\]{1,200})"/.exec(message) ?? [];
    const [, toolCallId] = /"toolCallId":\s*"([^"\\]{1,200})"/.exec(message) ?? [];
    if (toolCallId === undefined) return;
    const [, end] = /"status":\s*"(completed|failed)"/.exec(message) ?? [];
    const content = [{ type: "content" as const, content: { type: "text" as const, text: LEFT_OUT } }];
    const update = { sessionUpdate: "tool_call_update" as const, toolCallId, content };
    this.#update({ sessionId, update: { ...update, ...optional({ status: end as ToolCallStatus }) } });
  }

  async #permission(request: RequestPermissionRequest): Promise<RequestPermissionResponse> {
    const current = this.#current;
    const { toolCall, options, sessionId } = request;
    const call = { sessionUpdate: "tool_call_update" as const, ...toolCall };
    const isChild = sessionId !== this.remoteId;
    if (current === undefined || (isChild && !this.#subagents.update(sessionId, call))) {
      return { outcome: { outcome: "cancelled" } };
    }
    const by = isChild ? this.#subagents.labelOf(sessionId) : this.#nest(call);
    if (by === undefined) {
      this.#subagents.passBy();
      current.turn.call(toolCall, true);
    }
    this.#reports.add(sessionId, call);
    if (this.#isOwn(request)) return { outcome: outcomeFor("allow", options) };
    const { title, kind, rawInput } = toolCall;
    const asking = title ?? kind ?? "a tool call";
    const question = {
      title: by === undefined ? asking : `${by}: ${asking}`,
      kind: kind ?? undefined,
      rawInput,
    };
    const decision = await current.ask(question, current.stop.signal);
    if (current.stop.signal.aborted) return { outcome: { outcome: "cancelled" } };
    if (decision === "deny") {
      current.denied.push(head(question.title, DENIED_MAX_CHARS));
      this.#reports.deny(sessionId, toolCall.toolCallId);
    }
    return { outcome: outcomeFor(decision, options) };
  }

  #isOwn(request: RequestPermissionRequest): boolean {
    if (this.#tools === undefined) return false;
    return isOwnTool(this.#hello?.agentInfo?.name, request, this.#tools.server.name);
  }

  async prompt(...[blocks, turn, ask, onCall]: Parameters<AcpConnection["prompt"]>) {
    const stop = new AbortController();
    const unknown = { totalCost: undefined, contextTokens: undefined, usage: undefined };
    const current: Current = { turn, ask, stop, denied: [], hasFailed: false, ...unknown };
    this.#current = current;
    this.#subagents.begin(turn);
    this.#reports.begin(onCall);
    const asked = this.#link.agent.request("session/prompt", { sessionId: this.remoteId, prompt: blocks });
    const answered = asked.then(ok, (error: unknown) => this.#refusal("session/prompt", error));
    const answer = await Promise.race([answered, this.#describeEnd("in the middle of the turn")]);
    // Without the pause, late text would belong to the next prompt.
    if (answer.ok && !stop.signal.aborted)
      await Promise.race([pause(this.#world.clock, LATE_TEXT_MS, stop.signal), this.#process.ended]);
    const isStopped = stop.signal.aborted;
    stop.abort();
    this.#subagents.end(isStopped);
    this.#reports.end();
    if (this.#current === current) this.#current = undefined;
    if (!answer.ok) return answer;
    const { stopReason, usage } = answer.value;
    const { totalCost, contextTokens, denied, hasFailed } = current;
    return ok({ stopReason, usage: usage ?? current.usage, totalCost, contextTokens, denied, hasFailed });
  }

  async cancel(): Promise<void> {
    this.#current?.stop.abort();
    if (!this.running()) return;
    // A failed write means that the program has ended; `#describeEnd` reports the exit.
    await this.#link.agent.notify("session/cancel", { sessionId: this.remoteId }).catch(() => {});
  }

  kill(): void {
    this.#process.kill();
  }

  async close(): Promise<void> {
    this.#current?.stop.abort();
    this.#link.close();
    await this.#process.stop();
  }
}

/** Starts the program and opens a session in it. */
export async function openAcp(parts: OpenParts): Promise<Result<AcpConnection>> {
  const sdk = await import("@agentclientprotocol/sdk/unstable");
  const started = await startAcpProcess(parts.program, parts.world);
  if (!started.ok) return started;
  const { input, output } = started.value;
  const bounded = output.pipeThrough(boundedLines((message) => connection.leaveOut(message)));
  const connection = new Connection(parts, started.value, (handlers) =>
    sdk
      .client({ name: "parley" })
      .onNotification("session/update", ({ params }) => handlers.update(params))
      .onRequest("session/request_permission", ({ params }) => handlers.permission(params))
      .connect(sdk.ndJsonStream(input, bounded, { maxMessageBytes: MESSAGE_MAX_BYTES })),
  );
  const kill = (): void => started.value.kill();
  if (parts.signal.aborted) kill();
  parts.signal.addEventListener("abort", kill, { once: true });
  const opened = await connection.open(parts, sdk.PROTOCOL_VERSION);
  parts.signal.removeEventListener("abort", kill);
  if (opened.ok) return ok(connection);
  await connection.close();
  return opened;
}
