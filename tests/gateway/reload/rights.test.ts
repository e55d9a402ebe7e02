// Rights and budgets of a gateway that follow a change of the configuration file during a run.

import { expect, test } from "vitest";
import { call } from "../../kit/model-server/steps.ts";
import { until } from "../../kit/until.ts";
import { type Json, openFollowing } from "./kit.ts";

type House = Awaited<ReturnType<typeof openFollowing>>;

const agents = { defaults: { model: "local/one" }, list: [{ id: "main" }, { id: "research" }] };
const open: Json = { agents, tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true } } };
const OTHER = "agent:research:main";

async function change(house: House, settings: Json): Promise<void> {
  const count = house.told.length;
  house.put(settings);
  house.reload();
  await until(() => house.told.length > count);
  expect(house.told.at(-1)).toMatchObject({ ok: true, restart: [] });
}

test.each<[what: string, tools: Json]>([
  ["tools.sessions.visibility", { sessions: { visibility: "self" }, agentToAgent: { enabled: true } }],
  ["tools.agentToAgent.enabled", { sessions: { visibility: "all" }, agentToAgent: { enabled: false } }],
  [
    "tools.agentToAgent.allow",
    { sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow: ["nobody"] } },
  ],
])("I13: if %s is narrowed, a run under way loses the right at its next tool call", async (_, tools) => {
  const asked = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const house = await openFollowing(async (request) => {
    if (request.lastUserText.startsWith("the other")) return "a secret of the other session";
    if (request.toolResults.length === 1) {
      expect(request.toolResults[0]).toContain("a secret of the other session");
      asked.resolve();
      await go.promise;
    }
    if (request.toolResults.length > 2) return request.toolResults.slice(1).join("\n");
    const read = call("sessions_history", { sessionKey: OTHER });
    return request.toolResults.length === 0
      ? [read]
      : [read, call("sessions_send", { sessionKey: OTHER, message: "the other, hello", timeoutSeconds: 0 })];
  }, open);
  const other = await house.client.agent({
    ...{ message: "the other one", sessionKey: OTHER, idempotencyKey: crypto.randomUUID() },
  });
  await other.done;
  const answer = house.says("look at the other session, and send to it");
  await asked.promise;
  await change(house, { agents, tools });
  go.resolve();
  const told = await answer;
  expect(told).not.toContain("a secret of the other session");
  expect(told.match(/"status":"(forbidden|error)"/g)).toHaveLength(2);
  const { messages } = await house.client.request("chat.history", { sessionKey: OTHER });
  expect(JSON.stringify(messages)).toContain("the other one");
  expect(JSON.stringify(messages)).not.toContain("the other, hello");
});

test.each<[what: string, settings: Json, code: string]>([
  ["its tool is denied", { tools: { deny: ["exec"] } }, "tool_denied"],
  ["its agent is removed", { agents: { ...agents, list: [{ id: "research" }] } }, "tool_denied"],
])(
  "I13: if %s while a command waits for its approval, the approved command does not run",
  async (_, settings, code) => {
    const asks = { agents, tools: { exec: { approval: "always" } } };
    const house = await openFollowing(
      ({ toolResults }) => toolResults[0] ?? [call("exec", { command: "echo ran > log.txt; cat log.txt" })],
      asks,
    );
    const answer = house.says("write the file");
    const [question] = await until(async () => {
      const { permissions } = await house.client.request("permissions.list", {});
      return permissions.length > 0 && permissions;
    });
    await change(house, { ...asks, ...settings });
    await house.client.request("permissions.answer", { id: question?.id ?? "", decision: "allow" });
    expect(await answer).toContain(`"code":"${code}"`);
  },
);

test("a budget that is set, raised and removed applies to the next model call", async () => {
  const house = await openFollowing(() => "an answer", { agents });
  const with_ = (budget: Json | undefined): Json => ({
    agents: { ...agents, defaults: { ...agents.defaults, ...(budget && { budget }) } },
  });
  expect(await house.says("hello")).toBe("an answer");
  await change(house, with_({ dailyTokens: 1 }));
  expect(await house.says("hello")).toContain("budget");
  await change(house, with_({ dailyTokens: 1_000_000 }));
  expect(await house.says("hello")).toBe("an answer");
  await change(house, with_({ dailyTokens: 2 }));
  expect(await house.says("hello")).toContain("budget");
  await change(house, with_(undefined));
  expect(await house.says("hello")).toBe("an answer");
});
