// Implements the agent's side of the Agent Client Protocol: an editor opens, prompts and cancels sessions.
// Each prompt starts one run, and is answered when that run ends, even if the connection to the gateway was
// lost in between. A run continues after the editor disconnects. Every failure is reported as a protocol
// error with a message.

import type {
  AgentContext,
  ClientCapabilities,
  InitializeResponse,
  PromptRequest,
  PromptResponse,
  SessionConfigOption,
  SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import type { Cli } from "../../../cli/cli.ts";
import type { Link, Reply } from "../../../cli/gateway-link.ts";
import { findSession } from "../../../cli/session-name.ts";
import { GatewayError } from "../../../contract/client/node.ts";
import type { RequestParams } from "../../../contract/client/types.ts";
import type { ChatEvent, FlowData } from "../../../contract/events.ts";
import { optional } from "../../../core/optional.ts";
import { mayAnswerPermissions } from "../../../core/rules/scopes.ts";
import { NOT_VISIBLE } from "../../../core/rules/visibility.ts";
import { labelOf } from "../../../core/text/label.ts";
import { EditorChildren, type SendFor } from "./children.ts";
import { type Choices, changeOf, readChoices } from "./choices.ts";
import { listSessions } from "./list.ts";
import { EditorPermissions } from "./permissions.ts";
import { hasModel, SETUP, signInMethods } from "./sign-in.ts";
import { promptOf, RunUpdates, replay } from "./updates.ts";

type Sdk = typeof import("@agentclientprotocol/sdk/unstable");

/** Maximum number of earlier messages that are sent to an editor on `session/load`. */
const REPLAYED_MAX = 1_000;
const LABEL_MAX_CHARS = 100;
/** Maximum number of characters of output that the editor has not yet read. */
const UNREAD_MAX_CHARS = 64 * 1024 * 1024;
const NOT_FOUND = -32_002;
const FAILED = -32_603;
const INVALID = -32_602;

export interface AcpOptions {
  /** The session that every `session/new` opens. Default: each `session/new` creates a session. */
  readonly session?: string;
  /** Agent of new sessions. Default: the default agent. */
  readonly agent?: string;
}

interface OpenSession {
  readonly key: string;
  readonly client: AgentContext;
  /** The run that answers the current prompt. Undefined if there is none. */
  run: { readonly id: string; readonly updates: RunUpdates; cancelled: boolean } | undefined;
  /** Undefined if the connection may not answer permission requests. */
  readonly permissions: EditorPermissions | undefined;
}

export class AcpServer {
  readonly #sdk: Sdk;
  readonly #cli: Cli;
  readonly #link: Link;
  readonly #options: AcpOptions;
  readonly #open = new Map<string, OpenSession>();
  readonly #overflow = Promise.withResolvers<void>();
  /** Undefined if the editor does not understand child sessions. */
  #children: EditorChildren | undefined;
  #unreadChars = 0;
  #label: string | undefined;
  #warnedServers = false;

  constructor(sdk: Sdk, cli: Cli, link: Link, options: AcpOptions) {
    this.#sdk = sdk;
    this.#cli = cli;
    this.#link = link;
    this.#options = options;
    link.client.on("chat", (event) => this.#onChat(event));
    link.client.on("agent", (event) => {
      if (event.stream === "flow") this.#onFlow(event.sessionKey, event.data);
      else if (!this.#isOpen(event.sessionKey)) this.#children?.onAgent(event);
      for (const { run } of this.#open.values()) {
        if (run?.id !== event.runId) continue;
        if (event.stream === "tool") run.updates.tool(event.data);
        else if (event.stream === "thinking") run.updates.thought(event.data.text);
      }
    });
    link.client.on("attention", () => this.#readPermissions());
    link.client.onState((state) => {
      if (state === "connected") this.#readPermissions();
    });
  }

  /** Resolves when too much output is unread, because the editor has stopped reading. */
  get overflow(): Promise<void> {
    return this.#overflow.promise;
  }

  /** Returns the protocol app with the handlers of all requests, ready to connect to an editor's streams. */
  app() {
    const cli = this.#cli;
    return this.#sdk
      .agent({ name: "parley" })
      .onRequest("initialize", ({ params }) => {
        const { title, name } = params.clientInfo ?? {};
        this.#label = labelOf(title ?? name ?? "", LABEL_MAX_CHARS);
        return this.#hello(params.clientCapabilities ?? {});
      })
      .onRequest("authenticate", async ({ params: { methodId } }) => {
        if (methodId !== SETUP) throw this.#error(INVALID, `unknown method; valid methods: ${SETUP}`);
        if (this.#value(await hasModel(this.#link, this.#options.agent))) return {};
        throw this.#sdk.RequestError.authRequired(
          undefined,
          "no model is set up yet: npx parley-gateway init",
        );
      })
      .onRequest("session/new", async ({ params, client }) => {
        this.#noteServers(params.mcpServers.length);
        const { key } = this.#rememberOpen(await this.#newKey(), client);
        return { sessionId: key, ...(await this.#choices(key)) };
      })
      .onRequest("session/load", async ({ params, client }) => {
        this.#noteServers(params.mcpServers.length);
        return this.#choices(await this.#load(params.sessionId, client));
      })
      .onRequest("session/resume", async ({ params, client }) => {
        const key = await this.#resolve(params.sessionId);
        this.#rememberOpen(key, client, params.sessionId);
        return this.#choices(key);
      })
      .onRequest("session/set_mode", async ({ params: { sessionId, modeId } }) => {
        await this.#change(sessionId, { thinkingLevel: modeId });
        return {};
      })
      .onRequest("session/set_config_option", async ({ params }) => {
        const change = changeOf(params);
        if (!change.ok) throw this.#error(INVALID, change.error, { code: change.code });
        return { configOptions: await this.#change(params.sessionId, change.value) };
      })
      .onRequest("session/close", async ({ params }) => {
        await this.cancel(params.sessionId);
        this.#open.get(params.sessionId)?.permissions?.end();
        this.#open.delete(params.sessionId);
        return {};
      })
      .onRequest("session/list", async ({ params }) => {
        const listed = await listSessions(this.#link, this.#options, params);
        return this.#value(listed, listed.ok || listed.code !== "invalid_argument" ? FAILED : INVALID);
      })
      .onRequest("session/prompt", ({ params, signal }) => this.#prompt(params, signal))
      .onNotification("session/cancel", ({ params }) => {
        this.cancel(params.sessionId).catch((error: unknown) => {
          cli.note(`A prompt could not be cancelled: ${error instanceof Error ? error.message : error}`);
        });
      });
  }

  #hello(capabilities: ClientCapabilities): InitializeResponse {
    const { ids } = this.#cli.parts.world;
    if (capabilities.subagents != null) this.#children = new EditorChildren(() => ids.uuid());
    return {
      protocolVersion: this.#sdk.PROTOCOL_VERSION,
      agentInfo: { name: "parley", title: "Parley", version: this.#link.client.hello.server.version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true },
        sessionCapabilities: { list: {}, resume: {}, close: {} },
      },
      authMethods: signInMethods(capabilities, this.#cli.parts.machine),
    };
  }

  #noteServers(count: number): void {
    if (count === 0 || this.#warnedServers) return;
    this.#warnedServers = true;
    this.#cli.note(
      "The editor's MCP servers are ignored. Configure them in tools.mcp.servers of the gateway.",
    );
  }

  #error(code: number, text: string, data?: unknown): Error {
    return new this.#sdk.RequestError(code, text, data);
  }

  /** Returns the value of a reply. If the reply is a failure, throws it as a protocol error. */
  #value<T>(reply: Reply<T>, code = FAILED): T {
    if (reply.ok) return reply.value;
    const hint = reply.hint === undefined || reply.error.includes(reply.hint) ? "" : ` ${reply.hint}`;
    throw this.#error(code, `${reply.error}${hint}`, { code: reply.code });
  }

  async #newKey(): Promise<string> {
    const { session, agent } = this.#options;
    if (session !== undefined) return this.#value(await findSession(this.#link, session), NOT_FOUND);
    const made = await this.#link.request("sessions.create", {
      client: "acp",
      ...optional({ agentId: agent, label: this.#label }),
    });
    return this.#value(made).key;
  }

  async #resolve(key: string): Promise<string> {
    return this.#value(await this.#link.request("sessions.resolve", { key }), NOT_FOUND).key;
  }

  /**
   * Remembers that the editor has a session open. `sessionId`: the name by which the editor knows it, which
   * may be an alias.
   */
  #rememberOpen(key: string, client: AgentContext, sessionId = key): OpenSession {
    const known = this.#open.get(sessionId);
    if (known !== undefined) return known;
    const mayAnswer = mayAnswerPermissions(this.#link.client.hello.auth);
    const opened: OpenSession = {
      ...{ key, client, run: undefined },
      permissions: mayAnswer
        ? new EditorPermissions(this.#link, key, {
            ...{ sessionId, client, note: (text) => this.#cli.note(text) },
            send: (update) => this.#notify(sessionId, opened, update),
            callOf: ({ runId, asked }) =>
              opened.run?.id === runId ? opened.run.updates.callOf(asked?.command) : undefined,
          })
        : undefined,
    };
    this.#open.set(sessionId, opened);
    void opened.permissions?.read();
    return opened;
  }

  #readPermissions(): void {
    for (const { permissions } of this.#open.values()) void permissions?.read();
  }

  /** Sends an update of a session to the editor. Does nothing if the editor has disconnected. */
  #notify(sessionId: string, { client }: OpenSession, update: SessionUpdate): void {
    if (this.#unreadChars > UNREAD_MAX_CHARS) return;
    const chars = JSON.stringify(update).length;
    this.#unreadChars += chars;
    // The editor has stopped reading. Disconnect it before its unread output fills the memory.
    if (this.#unreadChars > UNREAD_MAX_CHARS) this.#overflow.resolve();
    const noteRead = (): void => {
      this.#unreadChars -= chars;
    };
    client.notify("session/update", { sessionId, update }).then(noteRead, noteRead);
  }

  async #choices(key: string): Promise<Choices> {
    return this.#value(await readChoices(this.#link, key));
  }

  /** Changes a session's settings and sends the new values to the editor. */
  async #change(
    sessionId: string,
    change: Omit<RequestParams<"sessions.patch">, "key">,
  ): Promise<SessionConfigOption[]> {
    const opened = this.#session(sessionId);
    this.#value(await this.#link.request("sessions.patch", { key: opened.key, ...change }), INVALID);
    const { configOptions = [], modes } = await this.#choices(opened.key);
    this.#notify(sessionId, opened, { sessionUpdate: "config_option_update", configOptions });
    if (modes !== undefined) {
      const { currentModeId } = modes;
      this.#notify(sessionId, opened, { sessionUpdate: "current_mode_update", currentModeId });
    }
    return configOptions;
  }

  /** Returns the session that the editor opened under this id. Throws if there is none. */
  #session(sessionId: string): OpenSession {
    const opened = this.#open.get(sessionId);
    if (opened !== undefined) return opened;
    const text = `session ${sessionId} is not open: call session/new or session/load first`;
    throw this.#error(NOT_FOUND, text, { sessionId });
  }

  async #load(sessionId: string, client: AgentContext): Promise<string> {
    const key = await this.#resolve(sessionId);
    const opened = this.#rememberOpen(key, client, sessionId);
    const page = await this.#link.request("chat.history", {
      sessionKey: key,
      limit: REPLAYED_MAX,
    });
    for (const message of this.#value(page).messages) {
      replay(message, (update) => this.#notify(sessionId, opened, update));
    }
    return key;
  }

  async #prompt({ sessionId, prompt }: PromptRequest, signal: AbortSignal): Promise<PromptResponse> {
    const opened = this.#session(sessionId);
    if (opened.run !== undefined)
      throw this.#error(-32_600, "this session already has a prompt in progress; wait for it or cancel it");
    const { message, attachments } = promptOf(prompt);
    if (message.trim() === "") throw this.#error(INVALID, "the prompt has no text");
    const { ids } = this.#cli.parts.world;
    const updates = new RunUpdates(
      (update) => this.#notify(sessionId, opened, update),
      () => ids.uuid(),
    );
    const run = { id: ids.orderedUuid(), updates, cancelled: false };
    opened.run = run;
    const onAbort = (): void => void this.cancel(sessionId).catch(() => {});
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const { key: sessionKey } = opened;
      const params = { message, sessionKey, idempotencyKey: run.id, attachments };
      const end = await this.#link.client.agent(params).done;
      await opened.permissions?.settle();
      updates.end(end.result?.text ?? "");
      if (end.status === "ok") return { stopReason: "end_turn" };
      if (end.code === "run_aborted" || run.cancelled) return { stopReason: "cancelled" };
      throw this.#error(FAILED, end.summary, end.code === undefined ? undefined : { code: end.code });
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      throw this.#error(FAILED, error.message, { code: error.code });
    } finally {
      signal.removeEventListener("abort", onAbort);
      opened.run = undefined;
    }
  }

  /** Stops the run of a session's prompt. The prompt then ends with the stop reason `cancelled`. */
  async cancel(sessionId: string): Promise<void> {
    const opened = this.#open.get(sessionId);
    if (opened?.run === undefined) return;
    opened.run.cancelled = true;
    await this.#link.client.request("chat.abort", { sessionKey: opened.key, runId: opened.run.id });
  }

  /** Returns whether the editor has opened this session itself: it then gets its updates only as such. */
  #isOpen(key: string): boolean {
    return [...this.#open.values()].some((opened) => opened.key === key);
  }

  /** Both sessions of a flow get its events. The parent's event announces a sub-agent, and its end. */
  #onFlow(key: string, data: FlowData): void {
    if (data.step === "ended" && key === data.to) this.#children?.finish(data);
    // Without the right to see the sub-agent, its key is hidden, and it would be one with all others.
    if (data.step !== "task" || key !== data.from || data.to === NOT_VISIBLE) return;
    const below = this.#children?.parentOf(key);
    if (below !== undefined) this.#children?.announce(data, below);
    for (const [sessionId, opened] of this.#open) {
      const send: SendFor = (id, update) => {
        if (this.#open.get(sessionId) === opened) this.#notify(id, opened, update);
      };
      if (opened.key === key) this.#children?.announce(data, { sessionId, send });
    }
  }

  #onChat(event: ChatEvent): void {
    const text = event.message?.content.map((block) => block.text).join("\n") ?? "";
    if (!this.#isOpen(event.sessionKey)) this.#children?.onChat(event, text);
    for (const [sessionId, opened] of this.#open) {
      if (opened.run?.id === event.runId) {
        if (event.state === "delta") opened.run.updates.text(text);
      } else if (opened.key === event.sessionKey && event.state === "final" && text !== "") {
        // This text comes from a run that the editor did not start: an announcement, or an answer to another
        // session.
        const content = { type: "text", text } as const;
        this.#notify(sessionId, opened, {
          sessionUpdate: "agent_message_chunk",
          content,
          messageId: event.runId,
        });
      }
    }
  }
}
