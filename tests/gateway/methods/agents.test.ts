// The settings of agents, and the test of a model.

import { expect, test } from "vitest";
import { agentSourcesOf } from "../../../src/config/agent-sources.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import { openHouse, TOKEN } from "../kit.ts";

const PARTIAL = "a-token-for-research-only";
const CHILDREN = "a-token-for-sub-agents-only";
const KEY = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789";
const TOKENS = [
  { token: PARTIAL, role: "operator", scopes: ["operator.admin"], sessions: ["agent:research:*"] },
  { token: CHILDREN, role: "operator", scopes: ["operator.read"], sessions: ["agent:main:subagent:*"] },
] as const;

test("AG1: agents.describe returns settings, sources, tools and work, but a token for some sessions gets no folder or counts", async () => {
  let finish = () => {};
  const held = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const agentSources = agentSourcesOf({
    agents: {
      defaults: { thinking: "low", budget: { dailyCost: 5 } },
      list: [{ id: "Main", thinking: "high", model: "" }],
    },
  });
  const house = await openHouse({
    agentSources,
    gateway: { tokens: [...TOKENS] },
    choices: { tools: { filter: { allow: [], deny: ["exec"] } } },
    play: async () => {
      await held;
      return "done";
    },
  });
  const admin = await house.client();
  const { runId } = await admin.request("chat.send", { sessionKey: "agent:main:main", message: "wait" });
  const { agents } = await admin.request("agents.describe", {});
  const main = agents.find(({ id }) => id === "main");
  expect(main).toMatchObject({
    default: true,
    runtime: "built-in",
    sources: { thinking: "agent", "budget.dailyCost": "defaults", model: "built-in" },
    work: { running: 1, waiting: 0, queued: 0 },
    today: { totalTokens: 0, cost: 0 },
    workspace: expect.any(String),
  });
  expect(main?.tools).toContain("sessions_list");
  expect(main?.withheld).toContainEqual({ name: "exec", reason: expect.stringContaining("tools.deny") });
  const partial = await house.client({ token: PARTIAL });
  const seen = (await partial.request("agents.describe", {})).agents;
  expect(seen.map(({ id }) => id)).toEqual(["research"]);
  for (const field of ["workspace", "work", "today", "program", "budget"])
    expect(seen[0]).not.toHaveProperty(field);
  expect(seen[0]?.tools).toContain("sessions_list");
  const narrow = await house.client({ token: CHILDREN });
  const [known] = (await narrow.request("agents.describe", {})).agents;
  expect(known?.id).toBe("main");
  for (const field of ["tools", "withheld"]) expect(known).not.toHaveProperty(field);
  finish();
  await admin.request("agent.wait", { runId });
});

test("models.test returns time, tokens and cost; its usage is in the ledger", async () => {
  const usage = {
    ...{ input: 12, output: 4, cacheRead: 0, cacheWrite: 0, totalTokens: 16 },
    cost: { input: 0.001, output: 0.002, cacheRead: 0, cacheWrite: 0, total: 0.003 },
  };
  const tryModel = async () => ok({ usable: true, text: "fine", durationMs: 812, answer: "OK", usage });
  const house = await openHouse({ tryModel });
  const admin = await house.client();
  expect(await admin.request("models.test", { model: "offline/rehearsal" })).toEqual({
    ...{ model: "offline/rehearsal", ok: true, durationMs: 812, totalTokens: 16, cost: 0.003, text: "OK" },
  });
  const { lines } = await admin.request("usage", { by: "agent" });
  expect(lines).toMatchObject([{ name: "models.test", totalTokens: 16, cost: 0.003, runs: 1 }]);
  await expect(admin.request("models.test", { model: "no/such" })).rejects.toMatchObject({
    code: "INVALID_REQUEST",
  });
});

test("AG2, I14: a failed test says what to do and shows no key; tests need an admin token that covers every session", async () => {
  const hint = "Check the key (models.providers.one.apiKey) and its rights.";
  const tryModel = async () =>
    ok({ usable: false, text: `invalid key ${KEY} (HTTP 401)`, durationMs: 90, hint });
  const reader = { token: "a-reader-of-everything", role: "operator", scopes: ["operator.read"] } as const;
  const house = await openHouse({ tryModel, gateway: { tokens: [...TOKENS, reader] } });
  const admin = await house.client({ token: TOKEN });
  const answer = await admin.request("models.test", { model: "offline/rehearsal" });
  expect(answer).toMatchObject({ ok: false, hint, totalTokens: 0, cost: 0 });
  expect(answer.error).toMatch(/^invalid key .+ \(HTTP 401\)$/);
  expect(JSON.stringify(answer)).not.toContain(KEY.slice(0, 20));
  for (const token of [PARTIAL, reader.token]) {
    const client = await house.client({ token });
    await expect(client.request("models.test", { model: "offline/rehearsal" })).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
  }
});
