// The error of a failed run is a text of its session, like its answer: it may quote what the run has read. The
// gate of that session decides who reads it. Nobody searches the text.

import { expect, test } from "vitest";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { until } from "../../kit/until.ts";
import { a2aClient, EXPOSED, saying, taskIn } from "../clients/a2a.ts";
import { openAi } from "../clients/openai.ts";
import { openHouse, quiet } from "../kit.ts";

const SCOPED = "a-token-for-research-sessions";
const OTHER = "a-token-for-writer-sessions";
const OWN = "agent:research:main";
const ERROR = "the provider is full; it was asked by agent:research:main about agent:writer:main";
const token = (name: string, agentId: string) => ({
  token: name,
  role: "operator" as const,
  scopes: ["operator.write" as const],
  sessions: [`agent:${agentId}:*`],
});
const TOKENS = [token(SCOPED, "research"), token(OTHER, "writer")];
const broken = (): string => {
  throw new Error(ERROR);
};

test("I9: who may see a session reads the errors of its runs, over any door, and nobody else does", async () => {
  const house = await openHouse({
    play: broken,
    gateway: { tokens: TOKENS },
    choices: { features: { a2a: EXPOSED }, tools: { visibility: "tree" } },
  });
  const admin = await house.client();
  const scoped = await house.client({ token: SCOPED });
  const other = await house.client({ token: OTHER });
  const heard = { scoped: [] as string[], other: [] as string[] };
  scoped.onEvent((event) => void heard.scoped.push(JSON.stringify(event)));
  other.onEvent((event) => void heard.other.push(JSON.stringify(event)));

  const { runId } = await scoped.request("chat.send", { sessionKey: OWN, message: "hi" });
  const waited = await scoped.request("agent.wait", { runId });
  const chainId = (await getRun(house.store.db, runId))?.chainId ?? "";
  const messages = [{ role: "user" as const, content: "hi" }];
  const asked = openAi(house, { apiKey: SCOPED }).chat.completions.create({
    model: "parley/research",
    messages,
  });
  const chat = await asked.catch((error: unknown) => String(error));
  const a2a = await a2aClient(house, { token: SCOPED });
  const status = { name: "session_status", args: { runId }, sessionKey: OWN };
  const answers = {
    "agent.wait": waited,
    "chat.history": (await scoped.request("chat.history", { sessionKey: OWN, includeRuns: true })).runs,
    "chains.get": await scoped.request("chains.get", { chainId }),
    "sessions.list": await scoped.request("sessions.list", {}),
    attention: await scoped.request("attention.list", {}),
    session_status: await admin.request("tools.invoke", status),
    OpenAI: chat,
    A2A: await taskIn(a2a.sendMessage(saying("hi"))),
  };
  for (const [door, answer] of Object.entries(answers)) expect(JSON.stringify(answer), door).toContain(ERROR);
  // Each failed run has an event of its lifecycle, and one of the chat.
  await until(async () => heard.scoped.filter((event) => event.includes(ERROR)).length >= 6);

  await expect(other.request("agent.wait", { runId })).rejects.toThrow("there is no run");
  await expect(other.request("chains.get", { chainId })).rejects.toThrow("there is no chain");
  await quiet(house);
  expect(heard.other.join("\n")).not.toContain("the provider");
});
