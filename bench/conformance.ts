// Checks which states the receipt of a message reaches, for each kind of recipient. Installs real coding
// agents from npm (a gigabyte, some minutes) into a temporary folder, or into `--dir FOLDER`, which is reused
// the next time. One scripted server replaces all models. Writes the table between two markers in
// docs/reference/TRIED.md. Exit code 1: an expected state was not reached.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import OpenAI from "openai";
import type { GatewayClient } from "../src/contract/client/node.ts";
import type { Receipt } from "../src/core/shapes/run.ts";
import type { ServedRequest } from "../tests/kit/model-server/requests.ts";
import { type Answer, startModelServer } from "../tests/kit/model-server/server.ts";
import { hang, httpError, text, usage } from "../tests/kit/model-server/steps.ts";
import { startTelegram, type TelegramServer } from "../tests/kit/platforms/telegram/server.ts";
import type { FakeBot } from "../tests/kit/platforms/telegram/state.ts";
import { LAUNCHER, TOKEN } from "../tests/kit/process/fleet.ts";
import { typed } from "../tests/kit/typed.ts";
import {
  CODING_AGENTS,
  type CodingAgent,
  headlessOf,
  idOf,
  installAgent,
  runtimeOf,
} from "./coding-agents.ts";
import { anyCall, type OwnTool, Puppet, withProgram } from "./puppet.ts";
import { writeTable } from "./table.ts";
import { type RunningGateway, withGateway } from "./with-gateway.ts";

const PAGE = fileURLToPath(new URL("../docs/reference/TRIED.md", import.meta.url));
const STATES = ["queued", "offered", "in_turn", "answered", "declined", "expired", "failed"] as const;
type State = (typeof STATES)[number];

/** Maximum time until a state is reached: some programs need half a minute to start. */
const STATE_MAX_MS = 90_000;
const ASKER = "agent:asker:main";
const BOT = { token: "123456789:AAH-not-a-real-token-of-any-bot-0", username: "parley_conformance_bot" };
const ADA = { id: 1001, is_bot: false, first_name: "Ada" };

/** While this is defined, the model does not answer. The promise resolves at the first request. */
let held: PromiseWithResolvers<void> | undefined;

/**
 * Returns an answer that never comes while `held` is defined, else a normal one: after an abort a program may
 * repeat the request.
 */
function hold(): Answer {
  held?.resolve();
  return held === undefined ? [text("Done."), usage({ input: 100, output: 20 })] : [hang()];
}

/** Waits until the model has received the request of a run, then aborts the run. */
async function abortHeld({ client }: Ground, sessionKey: string): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, STATE_MAX_MS);
  await Promise.race([held?.promise, late.promise]);
  clearTimeout(timer);
  held = undefined;
  await client.call("chat.abort", { sessionKey });
}

/** The scripted model of the coding agent that is checked as an MCP client at the moment. */
let puppet: Puppet | undefined;

/** Answers as the model of every agent. A word such as `TASK-HANG` in a message decides the answer. */
function play(request: ServedRequest): Answer | Promise<Answer> {
  if (puppet !== undefined && request.agentId === undefined) return puppet.answer(request);
  const users = request.messages.filter(({ role }) => role === "user").flatMap(({ texts }) => texts);
  const asked = /TASK-([A-Z]+)/.exec(users.findLast((said) => said.includes("TASK-")) ?? "")?.[1];
  // Requests without tools ask for a title or a summary.
  if (request.agentId === "asker" || request.toolNames.length === 0) return "REPLY_SKIP";
  const counted = usage({ input: 100, output: 20 });
  switch (asked) {
    case "HANG":
      return hold();
    case "WORK":
      return request.messages.at(-1)?.role === "tool" ? hold() : [text("I look."), anyCall(request), counted];
    case "REFUSE":
      return httpError(400, "the model refuses this request", {}, "invalid_request_error");
    case "SKIP":
      return [text("REPLY_SKIP"), counted];
    default:
      return [text("Done."), counted];
  }
}

interface Ground extends RunningGateway {
  readonly telegram: TelegramServer;
  readonly bot: FakeBot;
}

async function tool<T>(client: GatewayClient, name: string, args: Record<string, unknown>): Promise<T> {
  return client.call<T>("tools.invoke", { name, arguments: args, sessionKey: ASKER });
}

/** Sends a message without waiting for the answer. Returns its id. */
async function send({ client }: Ground, sessionKey: string, message: string): Promise<string> {
  const args = { sessionKey, message, timeoutSeconds: 0 };
  const sent = await tool<{ messageId?: string; error?: string }>(client, "sessions_send", args);
  if (sent.messageId === undefined) throw new Error(`not sent: ${JSON.stringify(sent)}`);
  return sent.messageId;
}

/** Waits until a message reaches a state. Returns false if it ends in another state, or too late. */
async function reaches({ client }: Ground, messageId: string, wanted: State): Promise<boolean> {
  const until = Date.now() + STATE_MAX_MS;
  for (;;) {
    const { state } = await tool<{ state: State }>(client, "session_status", { messageId });
    if (state === wanted) return true;
    if (STATES.indexOf(state) > STATES.indexOf("in_turn") || Date.now() > until) {
      process.stderr.write(`  ${wanted}: it is ${state}\n`);
      return false;
    }
    await new Promise((done) => setTimeout(done, 100));
  }
}

type Reached = Partial<Record<State, boolean>>;

/**
 * Sends a message whose request the model server rejects. Returns false if the receipt claims that the model
 * has read or answered the message.
 */
async function failsUnheard(ground: Ground, sessionKey: string): Promise<boolean> {
  const messageId = await send(ground, sessionKey, "TASK-REFUSE");
  if (!(await reaches(ground, messageId, "failed"))) return false;
  const { times } = await tool<Receipt>(ground.client, "session_status", { messageId });
  return times.in_turn === undefined;
}

/** Sends messages to a session with a model, and checks each state that they should reach. */
async function tryModel(ground: Ground, sessionKey: string): Promise<Reached> {
  const reached: Reached = {};
  held = Promise.withResolvers();
  const hanging = await send(ground, sessionKey, "TASK-HANG");
  reached.offered = await reaches(ground, hanging, "offered");
  const waiting = await send(ground, sessionKey, "TASK-SAY");
  reached.queued = await reaches(ground, waiting, "queued");
  await abortHeld(ground, sessionKey);
  reached.expired = await reaches(ground, waiting, "expired");
  reached.failed = (await reaches(ground, hanging, "failed")) && (await failsUnheard(ground, sessionKey));
  const asking = await send(ground, sessionKey, "TASK-SAY");
  reached.answered = await reaches(ground, asking, "answered");
  reached.declined = await reaches(ground, await send(ground, sessionKey, "TASK-SKIP"), "declined");
  held = Promise.withResolvers();
  const working = await send(ground, sessionKey, "TASK-WORK");
  reached.in_turn = await reaches(ground, working, "in_turn");
  await abortHeld(ground, sessionKey);
  return reached;
}

/** Sends messages to the session of an MCP client, and checks each state that they should reach. */
async function tryInbox(ground: Ground, handle: string, own: OwnTool): Promise<Reached> {
  await own("sessions_inbox", {});
  const listed = await ground.client.request("sessions.list", { search: handle });
  const key = listed.sessions.find((one) => one.key.endsWith(`:mcp:${handle}`))?.key ?? "";
  const reached: Reached = {};
  const asked = await send(ground, key, "a question");
  reached.queued = await reaches(ground, asked, "queued");
  await own("sessions_inbox", {});
  reached.offered = await reaches(ground, asked, "offered");
  await own("sessions_inbox", { ack: [asked] });
  reached.in_turn = await reaches(ground, asked, "in_turn");
  const answer = (message: string) => own("sessions_send", { sessionKey: ASKER, message, timeoutSeconds: 0 });
  await answer("an answer");
  reached.answered = await reaches(ground, asked, "answered");
  const second = await send(ground, key, "a second question");
  await own("sessions_inbox", {});
  await answer("REPLY_SKIP");
  reached.declined = await reaches(ground, second, "declined");
  const third = await send(ground, key, "a third question");
  await ground.client.request("sessions.reset", { key });
  reached.expired = await reaches(ground, third, "expired");
  return reached;
}

/** Checks the client library of the MCP SDK as an MCP client. */
async function tryReference(ground: Ground): Promise<Reached> {
  const headers = { authorization: `Bearer ${TOKEN}`, "x-parley-handle": "reference" };
  const transport = new StreamableHTTPClientTransport(new URL(`${ground.httpUrl}/mcp`), {
    requestInit: { headers },
  });
  const mcp = new Client({ name: "reference", version: "0" });
  // The cast is needed, because the types of the SDK's transport and of its client differ in one optional
  // field.
  await mcp.connect(transport as Parameters<Client["connect"]>[0]);
  const reached = await tryInbox(ground, "reference", (name, args) =>
    mcp.callTool({ name, arguments: args }),
  );
  await mcp.close();
  return reached;
}

/** Checks a coding agent as an MCP client, in a headless run whose scripted model calls the tools. */
async function tryProgram(ground: Ground, agent: CodingAgent): Promise<Reached> {
  const id = idOf(agent);
  const own = join(home, `${id}-headless`);
  const work = join(own, "work");
  mkdirSync(work, { recursive: true });
  const mcp = {
    command: process.execPath,
    args: [LAUNCHER, "--url", ground.wsUrl, "mcp", "--handle", id],
    env: { PARLEY_TOKEN: TOKEN, HOME: own },
  };
  const { command, env } = headlessOf(agent, folder, server, own, mcp);
  const playing = new Puppet();
  puppet = playing;
  try {
    return await withProgram({ name: agent.name, command, env, cwd: work }, playing, (tool) =>
      tryInbox(ground, id, tool),
    );
  } finally {
    puppet = undefined;
  }
}

/** Starts a conversation with OpenAI's official client library. */
async function openaiSession({ httpUrl }: Ground): Promise<string> {
  const sessionKey = "agent:built-in:from-openai";
  const openai = new OpenAI({ apiKey: TOKEN, baseURL: `${httpUrl}/v1`, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "TASK-SAY" }];
  const options = { headers: { "x-parley-session-key": sessionKey } };
  await openai.chat.completions.create({ model: "parley/built-in", messages }, options);
  return sessionKey;
}

/** Starts a conversation in which a person writes to a Telegram bot. */
async function telegramSession({ client, telegram, bot }: Ground): Promise<string> {
  const chat = { id: ADA.id, type: "private", first_name: "Ada" };
  telegram.push(bot, { message: { message_id: 1, date: 1, from: ADA, chat, text: "TASK-SAY" } });
  const until = Date.now() + STATE_MAX_MS;
  while (Date.now() < until) {
    const { sessions } = await client.request("sessions.list", { search: "telegram" });
    const [row] = sessions;
    if (row !== undefined) return row.key;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error("no session of Telegram");
}

interface Recipient {
  readonly name: string;
  readonly how: string;
  /** The coding agent that must be installed before this check. */
  readonly agent?: CodingAgent;
  /** States that this recipient cannot reach. */
  readonly never?: readonly State[];
  reach(ground: Ground): Promise<Reached>;
}

const INBOX_NEVER: readonly State[] = ["failed"];

const RECIPIENTS: readonly Recipient[] = [
  {
    name: "built-in agent",
    how: "scripted model",
    reach: (ground) => tryModel(ground, "agent:built-in:main"),
  },
  ...CODING_AGENTS.map((agent) => ({
    name: `${agent.name}, ACP`,
    how: `\`${agent.acp.packageName}\` ${agent.acp.version}`,
    agent,
    reach: (ground: Ground) => tryModel(ground, `agent:${idOf(agent)}:main`),
  })),
  ...CODING_AGENTS.map((agent) => ({
    name: `${agent.name}, MCP`,
    how: `\`${agent.headless.packageName}\` ${agent.headless.version}`,
    agent,
    never: INBOX_NEVER,
    reach: (ground: Ground) => tryProgram(ground, agent),
  })),
  {
    name: "another MCP client",
    how: "`@modelcontextprotocol/sdk`",
    never: INBOX_NEVER,
    reach: tryReference,
  },
  {
    name: "OpenAI client",
    how: "`openai`, built-in agent",
    reach: async (ground) => tryModel(ground, await openaiSession(ground)),
  },
  {
    name: "Telegram chat",
    how: "Bot API server of the tests, built-in agent",
    reach: async (ground) => tryModel(ground, await telegramSession(ground)),
  },
];

function rowOf({ name, how, never = [] }: Recipient, reached: Reached): string {
  const missing = (state: State): string => (never.includes(state) ? "–" : "no");
  const cells = STATES.map((state) => (reached[state] === true ? "yes" : missing(state)));
  return `| ${[name, how, ...cells].join(" | ")} |`;
}

const USAGE = `npm run conformance -- [options]
  --dir DIR    install into DIR, and reuse it the next time
  --only NAME  check only this recipient: ${RECIPIENTS.map(({ name }) => name).join("; ")}
  --print      do not write docs/reference/TRIED.md`;
const values = typed(USAGE, {
  dir: { type: "string" },
  only: { type: "string" },
  print: { type: "boolean" },
});
const folder = resolve(values.dir ?? mkdtempSync(join(tmpdir(), "parley-coding-agents-")));
const chosen = RECIPIENTS.filter(({ name }) => values.only === undefined || values.only === name);
const home = mkdtempSync(join(tmpdir(), "parley-conformance-"));
const server = await startModelServer(play);
const telegram = await startTelegram();
const bot = telegram.addBot(BOT.token, BOT.username);
telegram.addChat({ id: ADA.id, type: "private" });
const needed = CODING_AGENTS.filter((agent) => chosen.some((one) => one.agent === agent));
for (const one of needed) await installAgent(one, folder);
const programs = needed.map((agent) => {
  const own = join(home, idOf(agent));
  mkdirSync(join(own, "work"), { recursive: true });
  const runtime = runtimeOf(agent, folder, server, own);
  return { id: idOf(agent), runtime: { ...runtime, cwd: join(own, "work") } };
});
const { id: _, ...provider } = server.provider("openai-completions");
const settings = {
  models: { providers: { one: provider } },
  agents: {
    defaults: { model: "one/test-model" },
    list: [{ id: "built-in", default: true }, { id: "asker" }, ...programs],
  },
  session: { dmScope: "per-peer" },
  tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true } },
  channels: { telegram: { botToken: BOT.token, apiRoot: telegram.url, dmPolicy: "open", allowFrom: ["*"] } },
};
const rows: string[] = [];
let holds = true;
try {
  await withGateway(home, settings, async (gateway) => {
    const ground: Ground = { ...gateway, telegram, bot };
    for (const recipient of chosen) {
      process.stderr.write(`${recipient.name} …\n`);
      const reached = await recipient.reach(ground);
      holds &&= STATES.every((state) => reached[state] === true || recipient.never?.includes(state) === true);
      rows.push(rowOf(recipient, reached));
    }
  });
} finally {
  await telegram.close();
  await server.close();
  rmSync(home, { recursive: true, force: true });
  if (values.dir === undefined) rmSync(folder, { recursive: true, force: true });
}
const table = [
  `| recipient | tried with | ${STATES.map((state) => `\`${state}\``).join(" | ")} |`,
  `|---|---|${"---|".repeat(STATES.length)}`,
  ...rows,
];
console.log(table.join("\n"));
if (values.print !== true && values.only === undefined) writeTable(PAGE, "conformance", table);
process.exitCode = holds ? 0 : 1;
