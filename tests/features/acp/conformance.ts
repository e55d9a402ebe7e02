// A client that checks an ACP agent: every message against the protocol's schema, and the requirements that
// the protocol's own compatibility kit (acp-tck, version 1) names, by its ids. A requirement returns the reason
// why it is not met.

import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import { fieldsOf } from "../../../src/core/json.ts";
import { PATIENCE_MS } from "../../kit/until.ts";
import { AcpChecker } from "./schema.ts";

type Json = Record<string, unknown>;

const STOP_REASONS = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Writes and reads lines of the protocol by hand, because a library would hide its mistakes. */
class RawClient {
  readonly checker = new AcpChecker();
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly #waiting = new Map<string, (answer: Json) => void>();
  /** Messages of the agent that are not answers. */
  readonly sent: Json[] = [];
  readonly #watchers: (() => void)[] = [];

  constructor(child: ChildProcess) {
    this.child = child;
    this.exited = new Promise((resolve) => child.once("exit", resolve));
    createInterface({ input: child.stdout as Readable }).on("line", (line) => this.#read(line));
  }

  #read(line: string): void {
    this.checker.check("agent", line);
    const message = JSON.parse(line) as Json;
    if (message.method === undefined) this.#waiting.get(JSON.stringify(message.id))?.(message);
    else this.sent.push(message);
    for (const watcher of this.#watchers.splice(0)) watcher();
  }

  write(line: string): void {
    this.child.stdin?.write(`${line}\n`);
  }

  notify(method: string, params: Json): void {
    this.write(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  answer(id: unknown, result: Json): void {
    this.write(JSON.stringify({ jsonrpc: "2.0", id, result }));
  }

  /** Sends a request. Returns its answer: `result` or `error`. */
  ask(method: string, params: Json = {}, id: unknown = crypto.randomUUID()): Promise<Json> {
    const { promise, resolve } = Promise.withResolvers<Json>();
    this.#waiting.set(JSON.stringify(id), resolve);
    this.checker.expect("client", { id, method });
    this.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return promise;
  }

  async result(method: string, params: Json = {}): Promise<Json> {
    const answer = await this.ask(method, params);
    if (answer.result === undefined) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
    return answer.result as Json;
  }

  /** Resolves with the first matching message that is not an answer. */
  async saw(fits: (message: Json) => boolean): Promise<Json> {
    for (;;) {
      const found = this.sent.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  updates(sessionId: unknown, from = 0): Json[] {
    const all = this.sent.slice(from).filter(({ method }) => method === "session/update");
    return all.map(({ params }) => fieldsOf(params)).filter((one) => one.sessionId === sessionId);
  }
}

/** The agent under test. */
export interface Agent {
  start(): ChildProcess;
  /** An absolute path. */
  readonly cwd: string;
  /** A prompt for which it asks a permission. */
  readonly askingPrompt: string;
}

interface Ground {
  readonly agent: Agent;
  readonly client: RawClient;
  /** The answer to `initialize`. */
  readonly hello: Json;
  newSession(): Promise<string>;
  prompt(sessionId: string, blocks: readonly Json[], more?: Json): Promise<Json>;
}

/** Returns the reason why the requirement is not met, or undefined. */
type Check = (ground: Ground) => Promise<string | undefined>;

const text = (said: string): Json => ({ type: "text", text: said });
const needs = (holds: boolean, otherwise: string): string | undefined => (holds ? undefined : otherwise);
const codeOf = ({ error }: Json): unknown => fieldsOf(error).code;
const isHistory = ({ update }: Json): boolean => /_chunk$/.test(String(fieldsOf(update).sessionUpdate));

/** Sends a prompt with these blocks, and returns whether it ends for a known reason. */
const promptEnds =
  (blocks: readonly Json[], more: Json = {}): Check =>
  async ({ newSession, prompt }) => {
    const { stopReason } = await prompt(await newSession(), blocks, more);
    return needs(STOP_REASONS.includes(String(stopReason)), `it ended with ${stopReason}`);
  };

const asksIn =
  (sessionId: string) =>
  ({ method, params }: Json): boolean =>
    method === "session/request_permission" && fieldsOf(params).sessionId === sessionId;

/** Cancels a prompt in the given way. It must end with `cancelled`, and no update may follow. */
const cancels =
  (cancel: (client: RawClient, sessionId: string) => unknown): Check =>
  async ({ agent, client, newSession, prompt }) => {
    const sessionId = await newSession();
    const ended = prompt(sessionId, [text(agent.askingPrompt)]);
    const asked = await client.saw(asksIn(sessionId));
    const cancelled = cancel(client, sessionId);
    client.answer(asked.id, { outcome: { outcome: "cancelled" } });
    const { stopReason } = await ended;
    await cancelled;
    const before = client.updates(sessionId).length;
    await client.ask("session/new", { cwd: agent.cwd, mcpServers: [] });
    if (client.updates(sessionId).length > before) return "an update followed the end of the prompt";
    return needs(stopReason === "cancelled", `it ended with ${stopReason}`);
  };

/** Opens a session again, and returns the updates before the answer and those after it. */
async function reopen({ agent, client, newSession, prompt }: Ground, method: string) {
  const sessionId = await newSession();
  await prompt(sessionId, [text("hello")]);
  const from = client.sent.length;
  const more = method === "session/load" ? { mcpServers: [] } : {};
  const result = await client.result(method, { sessionId, cwd: agent.cwd, ...more });
  const before = client.updates(sessionId, from);
  await client.ask("session/new", { cwd: agent.cwd, mcpServers: [] });
  return { result, before, after: client.updates(sessionId, from).slice(before.length) };
}

interface Option {
  readonly id: string;
  readonly type: string;
  readonly currentValue: unknown;
  readonly options: readonly { readonly value: string }[];
}

const opened = ({ agent, client }: Ground): Promise<Json> =>
  client.result("session/new", { cwd: agent.cwd, mcpServers: [] });

const CHECKS: Readonly<Record<string, Check>> = {
  "ACP-JSONRPC-001": async ({ client }) => {
    const ids = [7, "a text", 0];
    const answers = await Promise.all(ids.map((id) => client.ask("_other/ids", {}, id)));
    return needs(
      isDeepStrictEqual(
        answers.map(({ id }) => id),
        ids,
      ),
      "an id came back changed",
    );
  },
  // An answer to a notification would be a response without a request, which the checker reports.
  "ACP-JSONRPC-003": async ({ client }) => {
    client.notify("_other/notice", {});
    client.notify("session/cancel", { sessionId: "nobody" });
    await client.ask("_other/then");
    return needs(client.checker.problems.length === 0, client.checker.problems.join());
  },
  "ACP-JSONRPC-004": async ({ client }) => {
    const answer = await client.ask("session/dance");
    return needs(codeOf(answer) === -32_601, JSON.stringify(answer));
  },
  "ACP-JSONRPC-005": async (ground) => {
    await ground.client.ask("session/new", { cwd: 5 });
    await ground.client.ask("session/prompt", { sessionId: "nobody", prompt: [] });
    return needs(typeof (await opened(ground)).sessionId === "string", "no session after an error");
  },
  "ACP-INIT-001": async ({ hello }) =>
    needs(Number.isInteger(hello.protocolVersion), "no whole protocolVersion"),
  "ACP-INIT-002": async ({ hello }) => needs(hello.protocolVersion === 1, `version ${hello.protocolVersion}`),
  "ACP-INIT-003": async ({ client }) => {
    const { protocolVersion } = await client.result("initialize", { protocolVersion: 65_535 });
    return needs(protocolVersion === 1, `it answers 65535 with ${protocolVersion}`);
  },
  "ACP-INIT-004": async ({ hello }) => {
    const { name, version } = fieldsOf(hello.agentInfo);
    return needs(typeof name === "string" && typeof version === "string", "no name and version");
  },
  "ACP-SESSION-001": async (ground) => {
    const { sessionId } = await opened(ground);
    return needs(typeof sessionId === "string" && sessionId !== "", "no id");
  },
  "ACP-SESSION-002": async ({ newSession }) => {
    const [one, two] = [await newSession(), await newSession()];
    return needs(one !== two, "two sessions have one id");
  },
  "ACP-PROMPT-001": promptEnds([text("hello")]),
  "ACP-PROMPT-002": async ({ client, newSession, prompt }) => {
    const sessionId = await newSession();
    const from = client.sent.length;
    await prompt(sessionId, [text("hello")]);
    const others = client.sent.length - from - client.updates(sessionId, from).length;
    return needs(others === 0, "a message of another session");
  },
  "ACP-PROMPT-003": promptEnds([text("hello"), { type: "resource_link", name: "a", uri: "file:///a" }]),
  "ACP-CANCEL-001": cancels((client, sessionId) => client.notify("session/cancel", { sessionId })),
  "ACP-LOAD-001": async (ground) => {
    const { before } = await reopen(ground, "session/load");
    return needs(before.some(isHistory), "the history is missing");
  },
  "ACP-LOAD-002": async (ground) => {
    const { after } = await reopen(ground, "session/load");
    return needs(after.length === 0, "history after the answer");
  },
  "ACP-RESUME-001": async (ground) => {
    const { result } = await reopen(ground, "session/resume");
    return needs(typeof result === "object", "no object");
  },
  "ACP-RESUME-002": async (ground) => {
    const { before } = await reopen(ground, "session/resume");
    return needs(!before.some(isHistory), "history before the answer");
  },
  "ACP-LIST-001": async ({ client, newSession }) => {
    const sessionId = await newSession();
    const { sessions } = await client.result("session/list");
    const ids = (sessions as Json[]).map((one) => one.sessionId);
    return needs(ids.includes(sessionId), "a new session is not listed");
  },
  "ACP-LIST-002": async ({ client }) => {
    const { sessions } = await client.result("session/list", { cwd: "/no/such/folder" });
    return needs(isDeepStrictEqual(sessions, []), "sessions of a folder that none has");
  },
  "ACP-CLOSE-001": async ({ client, newSession }) => {
    const result = await client.result("session/close", { sessionId: await newSession() });
    return needs(isDeepStrictEqual(result, {}), "no empty object");
  },
  "ACP-CLOSE-002": cancels((client, sessionId) => client.result("session/close", { sessionId })),
  "ACP-MODES-001": async (ground) => {
    const { currentModeId, availableModes } = fieldsOf((await opened(ground)).modes);
    const ids = (availableModes as { id: string }[]).map(({ id }) => id);
    return needs(ids.includes(String(currentModeId)), `${currentModeId} is not among ${ids}`);
  },
  "ACP-MODES-002": async (ground) => {
    const { sessionId, modes } = await opened(ground);
    const { currentModeId, availableModes } = fieldsOf(modes);
    const other = (availableModes as { id: string }[]).find(({ id }) => id !== currentModeId);
    await ground.client.result("session/set_mode", { sessionId, modeId: other?.id });
    const now = ground.client.updates(sessionId).map(({ update }) => fieldsOf(update).currentModeId);
    return needs(now.includes(other?.id), "the new mode is not told");
  },
  "ACP-CONFIG-001": async (ground) => {
    const { configOptions } = await opened(ground);
    const wrong = (configOptions as Option[]).find(
      ({ options, currentValue }) => !options.some(({ value }) => value === currentValue),
    );
    return needs(wrong === undefined, `${wrong?.id} has a value of its own`);
  },
  "ACP-CONFIG-002": async (ground) => {
    const { sessionId, configOptions } = await opened(ground);
    const all = configOptions as Option[];
    const { id: configId = "", options = [], currentValue } = all.at(-1) ?? {};
    const value = options.find((one) => one.value !== currentValue)?.value;
    const changed = await ground.client.result("session/set_config_option", { sessionId, configId, value });
    const now = changed.configOptions as Option[];
    const isWhole = isDeepStrictEqual(
      now.map(({ id }) => id),
      all.map(({ id }) => id),
    );
    const set = now.find(({ id }) => id === configId)?.currentValue;
    return needs(isWhole && set === value, JSON.stringify(now.map((one) => [one.id, one.currentValue])));
  },
  "ACP-CONFIG-003": async (ground) => {
    const { configOptions } = await opened(ground);
    return needs(
      (configOptions as Option[]).every(({ type }) => type !== "boolean"),
      "a boolean option",
    );
  },
  "ACP-PROMPTCAP-001": promptEnds([text("look"), { type: "image", mimeType: "image/png", data: PNG }]),
  "ACP-PROMPTCAP-003": promptEnds([
    text("read"),
    { type: "resource", resource: { uri: "file:///a.txt", mimeType: "text/plain", text: "alpha" } },
  ]),
  "ACP-AUTH-001": async ({ client }) => {
    const clientCapabilities = { auth: { terminal: true } };
    const { authMethods } = await client.result("initialize", { protocolVersion: 1, clientCapabilities });
    const ids = (authMethods as { id: string }[]).map(({ id }) => id);
    return needs(ids.length > 0 && new Set(ids).size === ids.length, `the ids ${ids}`);
  },
  "ACP-AUTH-002": async ({ hello }) => {
    const types = (hello.authMethods as { type?: string }[]).map(({ type }) => type);
    return needs(!types.includes("terminal"), "a terminal sign-in for a client without a terminal");
  },
  // The client offers neither files nor a terminal nor questions.
  "ACP-CLIENTCAP-001": async ({ client }) => {
    const wrong = client.sent.find(({ method }) => /^(?:fs|terminal|elicitation)\//.test(String(method)));
    return needs(wrong === undefined, JSON.stringify(wrong));
  },
  "ACP-EXT-001": async ({ client }) => {
    const answer = await client.ask("_other/ask", { any: 1 });
    return needs("result" in answer || "error" in answer, "no answer");
  },
  "ACP-META-001": promptEnds([text("hello")], {
    _meta: { traceparent: `00-${"1".repeat(32)}-${"1".repeat(16)}-01` },
  }),
  "ACP-ERROR-001": async ({ client }) => {
    const { error } = await client.ask("session/prompt", { sessionId: "nobody", prompt: [text("hi")] });
    return needs(/^.+$/.test(String(fieldsOf(error).message)), JSON.stringify(error));
  },
  "ACP-INFO-PARSE-001": async (ground) => {
    ground.client.checker.expect("client", { id: null, method: "_broken" });
    ground.client.write("{ no JSON");
    return needs(typeof (await opened(ground)).sessionId === "string", "no session after a broken line");
  },
  "permission: asked, and denied": async ({ agent, client, newSession, prompt }) => {
    const sessionId = await newSession();
    const ended = prompt(sessionId, [text(agent.askingPrompt)]);
    const asked = await client.saw(asksIn(sessionId));
    const { options, toolCall } = fieldsOf(asked.params);
    const deny = (options as Json[]).find(({ kind }) => kind === "reject_once");
    client.answer(asked.id, { outcome: { outcome: "selected", optionId: deny?.optionId } });
    const { stopReason } = await ended;
    const ofCall = client
      .updates(sessionId)
      .map(({ update }) => fieldsOf(update))
      .filter(({ toolCallId }) => toolCallId === fieldsOf(toolCall).toolCallId);
    return needs(stopReason === "end_turn" && ofCall.at(-1)?.status === "failed", JSON.stringify(ofCall));
  },
};

export interface Outcome {
  readonly id: string;
  /** Absent if the requirement is met. */
  readonly why?: string;
}

/** Checks an agent in one process, and what it does when its input ends. */
export async function checkAgent(agent: Agent): Promise<readonly Outcome[]> {
  const client = new RawClient(agent.start());
  const hello = await client.result("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const newSession = async (): Promise<string> => {
    const made = await client.result("session/new", { cwd: agent.cwd, mcpServers: [] });
    return String(made.sessionId);
  };
  const prompt = (sessionId: string, blocks: readonly Json[], more: Json = {}) =>
    client.result("session/prompt", { sessionId, prompt: blocks, ...more });
  const ground: Ground = { agent, client, hello, newSession, prompt };
  const outcomes: Outcome[] = [];
  for (const [id, check] of Object.entries(CHECKS)) {
    const late = Promise.withResolvers<string>();
    const timer = setTimeout(() => late.resolve("no answer"), PATIENCE_MS);
    const why = await Promise.race([late.promise, check(ground)]).catch((error: unknown) => String(error));
    clearTimeout(timer);
    outcomes.push({ id, ...(why === undefined ? {} : { why }) });
  }
  client.child.stdin?.end();
  await client.exited;
  outcomes.push({ id: "ACP-SHUTDOWN-001" });
  const { problems } = client.checker;
  outcomes.push({ id: "ACP-SCHEMA-001", ...(problems.length === 0 ? {} : { why: problems.join("\n") }) });
  return outcomes;
}
