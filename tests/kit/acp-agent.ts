// An ACP agent in a real process, based on the protocol's own library. The messages of a test control it, as
// listed below. It writes its prompts and observations line by line into the file that ACP_LOG names.
//
//   say TEXT        answers TEXT              prompt          answers with its whole prompt, as JSON
//   think TEXT      a thought, then "ok"      servers         lists the MCP servers of its session
//   tool            a call with its result    ask             asks for permission, reports the decision
//   hang            until it is cancelled     stuck           until it is killed
//   die             ends in the middle        open            a call that is never answered, then "ok"
//   spend N         says that it cost N USD   flood           four thousand pieces of text
//   late            text, a tool call, text, then the result of that call; env: answers with its environment
//   mcp NAME JSON   calls a tool of the MCP server, through a client of that protocol
//   permit JSON     asks for permission with this tool call and these options, reports the decision
//   quick           two pieces of text, then a call; ends without another text
//   moved           text, a call that is still to begin, text, then the beginning and the end of that call
//   beside          text and a call, during another call; then text, and the end of the other call
//   silent          asks for permission, and ends its turn without a text
//   broken TEXT     reports a model error like Codex, with TEXT as its answer; "retried": the model recovers
//   large MB KIND   a call whose result has MB megabytes: a diff, numbers, or texts; then "ok"
//   delayed TEXT    "First", ends its turn, and writes TEXT half a second later
//   play JSON       sends these updates in order: { from?, update }, { from?, ask } or "hang", and after "end" the
//                   rest when its turn has ended; "$own" is its own session, and "$large" a list of numbers
//                   that makes a message too large
//   warn            sends a warning: as a notice if the client supports notices, else in its answer
//
// ACP_LOAD=1: the agent loads earlier sessions from the folder ACP_STATE. ACP_REFUSE: it requires a sign-in.
// ACP_NAME: its name. ACP_IMAGES=1: it takes pictures. ACP_MODES=0: it has no modes. ACP_TOOLS says when it
// lists the tools of its MCP server. By default it does so when a session begins; `late`: when the file
// `connect-KEY` is in ACP_STATE (KEY is the session key in Parley); `never`: not at all; `die`: it exits.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { optional } from "../../src/core/optional.ts";

const SELF = fileURLToPath(import.meta.url);
/** A module that keeps compiled code for the next start, because tests start the agent often. */
const CACHED = 'data:text/javascript,import module from "node:module"; module.enableCompileCache();';

/** The command that starts this ACP agent. */
export const ACP_AGENT: readonly string[] = [process.execPath, "--import", CACHED, SELF];

interface Kept {
  readonly id: string;
  servers: acp.McpServer[];
  cwd: string;
  turns: number;
  spent: number;
  /** Steps that a loaded session replays. */
  played?: readonly Played[];
}

/** Sends the ACP messages that report a tool call and its end. */
interface Hands {
  readonly client: acp.AgentContext;
  readonly session: Kept;
  call(toolCallId: string, more?: Partial<acp.ToolCall>): Promise<void>;
  done(toolCallId: string, result: string, status?: acp.ToolCallStatus): Promise<void>;
}

const {
  ACP_LOG,
  ACP_STATE,
  ACP_LOAD,
  ACP_IMAGES,
  ACP_REFUSE,
  ACP_NAME = "test-agent",
  ACP_MODES,
  ACP_TOOLS,
} = process.env;
const log = (what: string): void => {
  if (ACP_LOG !== undefined) appendFileSync(ACP_LOG, `${what}\n`);
};

/** Returns the address of an MCP server over HTTP, also of one that a program connects to standard streams. */
function addressOf(server: acp.McpServer): { url: string; authorization: string } {
  if ("url" in server)
    return { url: server.url, authorization: server.headers.map(({ value }) => value).join() };
  if (!("command" in server)) throw new Error("no address");
  const { args, env } = server;
  const url = `${(args[args.indexOf("--url") + 1] ?? "").replace("ws", "http")}/mcp`;
  const token = env.find(({ name }) => name === "PARLEY_TOKEN")?.value;
  return { url, authorization: `Bearer ${token}` };
}

/**
 * Lists the tools of an MCP server over HTTP. It does not start the program that connects standard streams to
 * the server.
 */
async function listTools(server: acp.McpServer | undefined, id: string): Promise<void> {
  if (ACP_TOOLS === "die") process.exit(4);
  if (server === undefined || ACP_TOOLS === "never") return;
  const [last, { url, authorization }] = ["args" in server ? server.args.at(-1) : "", addressOf(server)];
  while (ACP_TOOLS === "late" && !existsSync(join(ACP_STATE ?? "", `connect-${last}`)))
    await new Promise((resolve) => setTimeout(resolve, 10));
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  const accept = "application/json, text/event-stream";
  const headers = { authorization, "content-type": "application/json", accept };
  const answer = await fetch(url, { method: "POST", headers, body });
  if (!(await answer.text()).includes("sessions_list")) log("no tools");
  log(`listed ${id}`);
}

type Played =
  | "hang"
  | "end"
  | { readonly mcp: string }
  | { readonly from?: string; readonly update: acp.SessionUpdate }
  | { readonly from?: string; readonly ask: Omit<acp.RequestPermissionRequest, "sessionId"> };

/** True if the client supports notices, which are separate from the answer. */
let takesNotices = false;

const codexStatus = (type: string): acp.SessionUpdate => ({
  sessionUpdate: "session_info_update",
  _meta: { codex: { threadStatus: { type } } },
});

class Agent {
  readonly #sessions = new Map<string, Kept>();
  readonly #cancels = new Map<string, () => void>();

  begin({ cwd, mcpServers }: acp.NewSessionRequest): acp.NewSessionResponse {
    if (ACP_REFUSE !== undefined) throw acp.RequestError.authRequired();
    const id = `own-${process.pid}-${this.#sessions.size + 1}`;
    this.#sessions.set(id, { id, cwd, servers: mcpServers, turns: 0, spent: 0 });
    log(`new ${id}`);
    void listTools(mcpServers[0], id);
    return { sessionId: id };
  }

  async load(request: acp.LoadSessionRequest, client: acp.AgentContext): Promise<acp.LoadSessionResponse> {
    const file = join(ACP_STATE ?? "", request.sessionId);
    if (ACP_STATE === undefined || !existsSync(file))
      throw acp.RequestError.sessionNotFound(request.sessionId);
    const kept = JSON.parse(readFileSync(file, "utf8")) as Kept;
    this.#sessions.set(kept.id, { ...kept, servers: request.mcpServers });
    log(`load ${kept.id}`);
    void listTools(request.mcpServers[0], kept.id);
    // An ACP agent that loads a session must replay its earlier messages.
    await this.#say(client, kept.id, "an old answer");
    for (const step of kept.played ?? [])
      if (typeof step === "object" && "update" in step)
        await this.#tell(client, step.from ?? kept.id, step.update);
    return {};
  }

  cancel(sessionId: string): void {
    log("cancel");
    this.#cancels.get(sessionId)?.();
  }

  async prompt(
    { sessionId, prompt }: acp.PromptRequest,
    client: acp.AgentContext,
  ): Promise<acp.PromptResponse> {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) throw acp.RequestError.sessionNotFound(sessionId);
    session.turns += 1;
    const texts = prompt.map((block) => (block.type === "text" ? block.text : `[${block.type}]`));
    const last = texts.at(-1) ?? "";
    log(`prompt ${last}`);
    if (texts.some((text) => text.startsWith("The gateway was interrupted"))) log("interrupted");
    const { stopReason, usage } = { usage: undefined, ...(await this.#play(session, last, texts, client)) };
    if (ACP_STATE !== undefined) writeFileSync(join(ACP_STATE, sessionId), JSON.stringify(session));
    return { stopReason, ...optional({ usage }) };
  }

  async #play(
    session: Kept,
    text: string,
    texts: readonly string[],
    client: acp.AgentContext,
  ): Promise<acp.PromptResponse> {
    const { id } = session;
    const [word = "", ...rest] = text.trim().split(" ");
    const argument = rest.join(" ");
    const end: acp.PromptResponse = { stopReason: "end_turn" };
    const call = (toolCallId: string, more: Partial<acp.ToolCall> = {}) =>
      this.#tell(client, id, {
        ...{ sessionUpdate: "tool_call", toolCallId, title: `Reading ${toolCallId}`, kind: "read" },
        ...{ status: "pending", rawInput: { path: toolCallId } },
        ...more,
      });
    const done = (toolCallId: string, result: string, status: acp.ToolCallStatus = "completed") =>
      this.#tell(client, id, {
        ...{ sessionUpdate: "tool_call_update", toolCallId, status },
        content: [{ type: "content", content: { type: "text", text: result } }],
      });
    switch (word) {
      case "think":
        await this.#tell(client, id, {
          sessionUpdate: "agent_thought_chunk",
          content: { type: "text", text: argument },
        });
        await this.#say(client, id, "ok");
        return end;
      case "prompt":
        await this.#say(client, id, JSON.stringify(texts));
        return end;
      case "servers":
        // The gateway redacts session tokens (`pass.…`) in answers, so the prefix is changed here and
        // restored by the test.
        await this.#say(client, id, JSON.stringify(session.servers).replaceAll("pass.", "pass~"));
        return end;
      case "env":
        await this.#say(client, id, JSON.stringify(Object.keys(process.env).sort()));
        return end;
      case "broken":
      case "warn":
        return this.#report(client, id, word, argument);
      default:
        return this.#work({ client, session, call, done }, word, text, argument);
    }
  }

  /** Makes the tool calls that the prompt names, or answers any other prompt with text. */
  async #work(
    { client, session, call, done }: Hands,
    word: string,
    text: string,
    argument: string,
  ): Promise<acp.PromptResponse> {
    const { id } = session;
    const end: acp.PromptResponse = { stopReason: "end_turn" };
    switch (word) {
      case "tool":
      case "late":
      case "quick":
      case "moved":
      case "beside":
      case "open":
        return this.#useTools({ client, session, call, done }, word);
      case "spend":
        session.spent += Number(argument);
        await this.#tell(client, id, {
          ...{ sessionUpdate: "usage_update", used: 1234, size: 100_000 },
          cost: { amount: session.spent, currency: "USD" },
        });
        await this.#say(client, id, "spent");
        return end;
      case "flood":
        for (let index = 0; index < 4_000; index++) await this.#say(client, id, "0123456789");
        return end;
      case "values":
        await new Promise<void>((resolve) => {
          const values = "{},".repeat(200_000);
          process.stdout.write(`{"jsonrpc":"2.0","method":"x","params":[${values}0]}\n`, () => resolve());
        });
        await this.#say(client, id, "unread");
        return end;
      case "large":
        return this.#sendLarge({ client, session, call, done }, argument);
      case "delayed":
        await this.#say(client, id, "First");
        setTimeout(() => void this.#say(client, id, argument), 500);
        return end;
      case "play":
        session.played = JSON.parse(
          argument.replaceAll("$own", id).replaceAll('"$large"', JSON.stringify(Array(300_000).fill(7))),
        ) as Played[];
        return this.#replay(client, id, session.played);
      case "ask":
        return this.#askFirst(client, id);
      case "silent":
        return this.#askFirst(client, id, false);
      case "permit":
        await this.#say(
          client,
          id,
          `I was told: ${await this.#permission(client, id, JSON.parse(argument))}`,
        );
        return end;
      case "die":
        await call("half", { status: "in_progress" });
        await this.#say(client, id, "half a word");
        process.stderr.write("the engine fell out\n");
        process.exit(3);
        break;
      case "stuck":
        process.on("SIGTERM", () => log("SIGTERM"));
        return this.#hang(client, id, false);
      case "hang":
        return this.#hang(client, id, true);
      case "mcp":
        return this.#callTool(client, session, argument);
      default:
        await this.#say(client, id, word === "say" ? argument : `turn ${session.turns}: ${text}`);
    }
    return end;
  }

  async #replay(client: acp.AgentContext, id: string, steps: readonly Played[]): Promise<acp.PromptResponse> {
    for (const [index, step] of steps.entries()) {
      if (step === "hang") return this.#hang(client, id, true);
      if (step === "end") {
        setTimeout(() => void this.#replay(client, id, steps.slice(index + 1)), 300);
        break;
      }
      const session = this.#sessions.get(id);
      if ("mcp" in step && session !== undefined) await this.#callTool(client, session, step.mcp);
      else if ("ask" in step) await this.#permission(client, step.from ?? id, step.ask);
      else if ("update" in step) await this.#tell(client, step.from ?? id, step.update);
    }
    log(`played ${steps.length}`);
    return { stopReason: "end_turn" };
  }

  async #sendLarge({ client, session, call }: Hands, argument: string): Promise<acp.PromptResponse> {
    const [megabytes, kind] = argument.split(" ");
    const half = (Number(megabytes) * 1_000_000) / 2;
    await call("big", { status: "in_progress" });
    const text = 'a "large" \\ ☃ \u0007 file '.repeat(half / 25);
    const block = { type: "content", content: { type: "text", text: "x".repeat(500_000) } };
    const results: Readonly<Record<string, object>> = {
      numbers: { rawOutput: Array(half).fill(7) },
      texts: {
        content: Array(half / 500_000)
          .fill([block, block])
          .flat(),
      },
      diff: { content: [{ type: "diff", path: "a.txt", oldText: text, newText: text }] },
    };
    await this.#tell(client, session.id, {
      ...{ sessionUpdate: "tool_call_update", toolCallId: "big", ...results[String(kind)] },
      status: "completed",
    });
    await this.#say(client, session.id, "ok");
    return { stopReason: "end_turn" };
  }

  /** Writes texts before, between and after tool calls. */
  async #useTools({ client, session, call, done }: Hands, word: string): Promise<acp.PromptResponse> {
    const { id } = session;
    const end: acp.PromptResponse = { stopReason: "end_turn" };
    switch (word) {
      case "tool":
        await this.#say(client, id, "Let me look. ");
        await call("notes.txt");
        await done("notes.txt", "forty-two");
        await this.#say(client, id, "It says ");
        await this.#say(client, id, "forty-two.");
        return { ...end, usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } };
      case "late":
        await call("a", { status: "in_progress" });
        await this.#say(client, id, "meanwhile");
        await call("b", { status: "in_progress" });
        await done("b", "of b", "failed");
        await done("a", "of a");
        await this.#say(client, id, "at last");
        return end;
      case "quick":
        for (const piece of ["Let me look", " at the notes."]) await this.#say(client, id, piece);
        await call("notes.txt", { status: "in_progress" });
        await done("notes.txt", "forty-two");
        return end;
      case "moved":
        await this.#say(client, id, "First this.");
        await call("a");
        await this.#say(client, id, "Then that");
        await done("a", "", "in_progress");
        await this.#say(client, id, " too.");
        await done("a", "of a");
        return end;
      case "beside":
        await call("a", { status: "in_progress" });
        await this.#say(client, id, "Meanwhile.");
        await call("b", { status: "in_progress" });
        await done("b", "of b");
        await this.#say(client, id, "At last");
        await done("a", "of a");
        await this.#say(client, id, ", done.");
        return end;
      case "open":
        await call("never", { status: "in_progress" });
        await this.#say(client, id, "ok");
        return end;
    }
    return end;
  }

  /** Reports a model error or a warning separately from the answer, if the client supports that. */
  async #report(
    client: acp.AgentContext,
    id: string,
    word: string,
    text: string,
  ): Promise<acp.PromptResponse> {
    if (word === "warn" && takesNotices) {
      const notice = { severity: "warning", title: "an unknown model" };
      await this.#tell(client, id, { sessionUpdate: "notice", ...notice });
    } else if (word === "warn") await this.#say(client, id, "Warning: an unknown model\n\n");
    if (word === "broken") {
      const types = text === "retried" ? ["active", "systemError", "active"] : ["active", "systemError"];
      for (const type of types) await this.#tell(client, id, codexStatus(type));
    }
    await this.#say(client, id, word === "warn" ? "REPLY_SKIP" : text);
    return { stopReason: "end_turn" };
  }

  async #hang(client: acp.AgentContext, id: string, listens: boolean): Promise<acp.PromptResponse> {
    await this.#tell(client, id, {
      ...{ sessionUpdate: "tool_call", toolCallId: "wait", title: "Waiting", kind: "execute" },
      status: "in_progress",
    });
    await this.#say(client, id, "I am waiting");
    log("waiting");
    const hold = setInterval(() => {}, 60_000);
    await new Promise<void>((resolve) => {
      if (listens) this.#cancels.set(id, resolve);
    });
    clearInterval(hold);
    return { stopReason: "cancelled" };
  }

  async #permission(
    client: acp.AgentContext,
    sessionId: string,
    request: Omit<acp.RequestPermissionRequest, "sessionId">,
  ): Promise<string> {
    const { outcome } = await client.request("session/request_permission", { ...request, sessionId });
    const said = outcome.outcome === "selected" ? outcome.optionId : outcome.outcome;
    log(`permission ${said}`);
    return said;
  }

  async #askFirst(client: acp.AgentContext, id: string, speaks = true): Promise<acp.PromptResponse> {
    const toolCall = { toolCallId: "rm", title: "Remove everything", kind: "execute" } as const;
    const said = await this.#permission(client, id, {
      toolCall: { ...toolCall, rawInput: { command: "rm -r build" } },
      options: [
        { kind: "allow_once", name: "Yes", optionId: "yes" },
        { kind: "reject_once", name: "No", optionId: "no" },
      ],
    });
    const status = said === "yes" ? "completed" : "failed";
    await this.#tell(client, id, { sessionUpdate: "tool_call_update", toolCallId: "rm", status });
    if (speaks) await this.#say(client, id, `I was told: ${said}`);
    return { stopReason: "end_turn" };
  }

  /** Connects to the session's MCP servers, like a real agent. */
  async #callTool(client: acp.AgentContext, session: Kept, argument: string): Promise<acp.PromptResponse> {
    const [name = "", ...json] = argument.split(" ");
    const [server] = session.servers;
    if (server === undefined) throw new Error("no server");
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const link = new Client({ name: "acp-agent", version: "0" });
    if ("command" in server) {
      const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
      const { PATH = "", HOME = "" } = process.env;
      const env = { PATH, HOME, ...Object.fromEntries(server.env.map((one) => [one.name, one.value])) };
      await link.connect(new StdioClientTransport({ command: server.command, args: server.args, env }));
    } else {
      const http = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
      const { url, authorization } = addressOf(server);
      const requestInit = { headers: { authorization } };
      await link.connect(new http.StreamableHTTPClientTransport(new URL(url), { requestInit }));
    }
    try {
      const result = await link.callTool({ name, arguments: JSON.parse(json.join(" ")) });
      const [said] = result.content as { text: string }[];
      await this.#say(client, session.id, said?.text ?? "nothing");
    } catch (error) {
      await this.#say(client, session.id, `refused: ${(error as Error).message}`);
    } finally {
      await link.close();
    }
    return { stopReason: "end_turn" };
  }

  #tell(client: acp.AgentContext, sessionId: string, update: acp.SessionUpdate): Promise<void> {
    return client.notify("session/update", { sessionId, update });
  }

  #say(client: acp.AgentContext, id: string, text: string): Promise<void> {
    return this.#tell(client, id, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }
}

function serve(): void {
  const agent = new Agent();
  log(`start ${process.pid}`);
  acp
    .agent({ name: "test-agent" })
    .onRequest("initialize", ({ params }) => {
      takesNotices = params.clientCapabilities?.session?.notices != null;
      return {
        protocolVersion: acp.PROTOCOL_VERSION,
        agentInfo: { name: ACP_NAME, version: "0" },
        agentCapabilities: {
          loadSession: ACP_LOAD === "1",
          promptCapabilities: { image: ACP_IMAGES === "1" },
        },
      };
    })
    .onRequest("session/new", ({ params }) => agent.begin(params))
    .onRequest("session/load", ({ params, client }) => agent.load(params, client))
    .onRequest("session/set_mode", ({ params: { sessionId, modeId } }) => {
      if (ACP_MODES === "0") throw acp.RequestError.methodNotFound("session/set_mode");
      log(`mode ${modeId} ${sessionId}`);
      return {};
    })
    .onRequest("session/prompt", ({ params, client }) => agent.prompt(params, client))
    .onNotification("session/cancel", ({ params }) => agent.cancel(params.sessionId))
    .connect(
      acp.ndJsonStream(
        Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
        Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
      ),
    );
}

if (process.argv[1] === SELF) {
  serve();
  // Tests kill most agents before they exit, so the cache is written now.
  flushCompileCache();
}
