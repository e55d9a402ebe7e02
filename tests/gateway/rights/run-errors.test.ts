// The error of a failed run may quote text of other sessions, for example if a model provider repeats a part of
// its request. No door shows the keys in it to a caller that may not see those sessions.

import { expect, test } from "vitest";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { until } from "../../kit/until.ts";
import { a2aClient, EXPOSED, saying, taskIn } from "../a2a/kit.ts";
import { type House, openHouse, quiet } from "../kit.ts";
import { askNew, objectOf, oldClient, sendAs } from "../mcp/kit.ts";
import { openAi } from "../openai/kit.ts";

const SCOPED = "a-token-for-research-sessions";
const OWN = "agent:research:main";
const HIDDEN = "agent:writer:main";
const TASKS = { "io.modelcontextprotocol/tasks": {} };
const BEARER = { authorization: `Bearer ${SCOPED}`, "x-parley-handle": "scoped" };
const TOKENS = [
  {
    token: SCOPED,
    role: "operator" as const,
    scopes: ["operator.write" as const],
    sessions: ["agent:research:*"],
  },
];

test("I9: the error of a run names no session that the caller may not see, over any door", async () => {
  const play = (): string => {
    throw new Error(`the provider quoted ${OWN} and ${HIDDEN}`);
  };
  const house = await openHouse({
    play,
    gateway: { tokens: TOKENS },
    choices: { a2a: EXPOSED, tools: { visibility: "tree" } },
  });
  const scoped = await house.client({ token: SCOPED });
  const admin = await house.client();
  const heard = { scoped: [] as string[], admin: [] as string[] };
  scoped.onEvent((event) => void heard.scoped.push(JSON.stringify(event)));
  admin.onEvent((event) => void heard.admin.push(JSON.stringify(event)));

  const shownTo = async (client: typeof scoped, token?: string): Promise<Record<string, string>> => {
    const { runId } = await client.request("chat.send", { sessionKey: OWN, message: "hi" });
    const waited = await client.request("agent.wait", { runId });
    const history = await client.request("chat.history", { sessionKey: OWN, includeRuns: true });
    const chainId = (await getRun(house.store.db, runId))?.chainId ?? "";
    const chain = await client.request("chains.get", { chainId });
    const messages = [{ role: "user" as const, content: "hi" }];
    const options = token === undefined ? {} : { apiKey: token };
    const asked = openAi(house, options).chat.completions.create({ model: "parley/research", messages });
    const chat = await asked.catch((error: unknown) => String(error));
    const a2a = await a2aClient(house, token === undefined ? {} : { token });
    const answers = {
      "agent.wait": waited,
      "chat.history": history.runs,
      "chains.get": chain,
      OpenAI: chat,
      A2A: await taskIn(a2a.sendMessage(saying("hi"))),
    };
    const entries = Object.entries(answers).map(([door, answer]) => [door, JSON.stringify(answer)]);
    return Object.fromEntries(entries) as Record<string, string>;
  };
  const ended = (events: readonly string[]) =>
    events.filter((event) => event.includes("the provider quoted"));

  for (const [door, text] of Object.entries(await shownTo(admin))) expect(text, door).toContain(HIDDEN);
  for (const [door, text] of Object.entries(await shownTo(scoped, SCOPED))) {
    expect(text, door).toContain(`the provider quoted ${OWN} and (not visible)`);
    expect(text, door).not.toContain(HIDDEN);
  }
  const { runId } = await scoped.request("chat.send", { sessionKey: OWN, message: "hi" });
  await scoped.request("agent.wait", { runId });
  // The call has the rights of the session, which sees only its own tree.
  const status = { name: "session_status", args: { runId }, sessionKey: OWN };
  expect(await admin.request("tools.invoke", status)).toMatchObject({
    error: `the provider quoted ${OWN} and (not visible)`,
  });
  // Each failed run has an event of its lifecycle, and one of the chat.
  await until(async () => ended(heard.scoped).length >= 12 && ended(heard.admin).length >= 12);
  expect(heard.scoped.join("\n")).not.toContain(HIDDEN);
  expect(ended(heard.admin).every((event) => event.includes(HIDDEN))).toBe(true);
});

const WORK = { sessionKey: OWN, message: "work", timeoutSeconds: 60 };
const SHOWN = `the provider quoted ${OWN} and (not visible)`;

/** Opens a gateway whose agents see only sessions of their own agent, and whose runs fail. */
function openStrict(play: () => string | Promise<string>): Promise<House> {
  const mcpToo = TOKENS.map((token) => ({ ...token, sessions: [...token.sessions, "agent:main:mcp:*"] }));
  return openHouse({
    play,
    gateway: { tokens: mcpToo },
    choices: { tools: { visibility: "agent" } },
  });
}

const broken = (): string => {
  throw new Error(`the provider quoted ${OWN} and ${HIDDEN}`);
};

async function textsIn(house: House, sessionKey: string): Promise<string> {
  await quiet(house);
  const admin = await house.client();
  return JSON.stringify(await admin.request("chat.history", { sessionKey }));
}

test("I9: a sender reads no hidden session in the error of its message's run", async () => {
  const house = await openStrict(broken);
  const admin = await house.client();
  const { key } = await admin.request("sessions.create", { agentId: "research" });
  expect(await sendAs(house, key, OWN, "work", 60)).toMatchObject({ status: "error", error: SHOWN });

  // Without a wait the sender gets a notice.
  expect(await sendAs(house, key, OWN, "work")).toMatchObject({ status: "accepted" });
  const told = await textsIn(house, key);
  expect(told).toContain(SHOWN);
  expect(told).not.toContain(HIDDEN);
});

test("I9: an MCP client reads no hidden session in results, tasks and notices of its sends", async () => {
  const house = await openStrict(broken);
  const client = await oldClient(house, "scoped", SCOPED);
  const call = { name: "sessions_send", arguments: WORK };
  expect(objectOf(await client.callTool(call))).toMatchObject({ status: "error", error: SHOWN });

  const stream = client.experimental.tasks.callToolStream(call, undefined, { task: {} });
  for await (const message of stream)
    if (message.type === "result") expect(objectOf(message.result)).toMatchObject({ error: SHOWN });
  const ids = await house.store.db.selectFrom("waits").select("call_id").execute();
  for (const { call_id: taskId } of ids) {
    const asked = { method: "tasks/get", params: { taskId }, name: taskId, extensions: TASKS };
    const { result } = (await askNew(house, asked, BEARER)) as { result: { result: unknown } };
    expect(objectOf(result.result)).toMatchObject({ error: SHOWN });
  }
  const later = { ...call, arguments: { ...WORK, timeoutSeconds: 0 } };
  expect(objectOf(await client.callTool(later))).toMatchObject({ status: "accepted" });
  await quiet(house);
  const inbox = JSON.stringify(await client.callTool({ name: "sessions_inbox" }));
  expect(inbox).toContain(SHOWN);
  expect(inbox).not.toContain(HIDDEN);
});

test("I9: a requester reads no hidden session in the error of its sub-agent's run", async () => {
  const house = await openStrict(broken);
  const admin = await house.client();
  const spawn = { name: "sessions_spawn", args: { task: "dig" }, sessionKey: OWN };
  expect(await admin.request("tools.invoke", spawn)).toMatchObject({ status: "accepted" });
  const told = await textsIn(house, OWN);
  expect(told).toContain(SHOWN);
  expect(told).not.toContain(HIDDEN);
});

test("I9: an answer that a model broke off names no hidden session in its error", async () => {
  const errorMessage = `the provider quoted ${OWN} and ${HIDDEN}`;
  const model = scriptedModel(() => ({ text: "Well,", stopReason: "error", errorMessage }));
  const house = await openHouse({ model, gateway: { tokens: TOKENS } });
  const admin = await house.client();
  const scoped = await house.client({ token: SCOPED });
  const { runId } = await admin.request("chat.send", { sessionKey: OWN, message: "hi" });
  await admin.request("agent.wait", { runId });
  const lastIn = async (client: typeof admin) =>
    (await client.request("chat.history", { sessionKey: OWN })).messages.at(-1);
  expect(await lastIn(admin)).toMatchObject({ errorMessage });
  expect(await lastIn(scoped)).toMatchObject({ errorMessage: SHOWN });
});
