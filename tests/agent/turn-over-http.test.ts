// Whole turns over the four provider APIs, through agent loop, model client and HTTP: tools, overflow,
// retries and aborts.

import { afterEach, expect, test } from "vitest";
import { resolveModel } from "../../src/agent/model/model.ts";
import { openModelPort } from "../../src/agent/model/port.ts";
import type { ModelBudget } from "../../src/core/rules/budget.ts";
import { joinPrompt, promptParts } from "../../src/core/rules/prompt/prompt.ts";
import { PROVIDER_APIS, type ProviderApi } from "../../src/core/shapes/settings/settings.ts";
import { type ModelServer, type Script, startModelServer } from "../kit/model-server/server.ts";
import { fakeWorld } from "../kit/world.ts";
import { startTurn, type TurnSetup } from "./turn-kit.ts";

let server: ModelServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function turnOver(api: ProviderApi, script: Script, setup: Partial<TurnSetup> = {}) {
  server = await startModelServer(script);
  const provider = server.provider(api);
  const model = resolveModel([provider], `${provider.id}/test-model`);
  if (!model.ok) throw new Error(model.error);
  const world = fakeWorld();
  const more = { model: model.value, world, thinking: "high" as const, ...setup.more };
  return { server, turn: startTurn({ port: openModelPort(world), ...setup, more }) };
}

test.each(PROVIDER_APIS)(
  "%s: a token budget limits the length of the requested answer, and is charged with the actual usage",
  async (api) => {
    const settled: number[] = [];
    const budget: ModelBudget = {
      reserve: async () => ({ kind: "fits", maxOutputTokens: 1_234, reserved: { tokens: 0, cost: 0 } }),
      settle: async ({ tokens }) => void settled.push(tokens),
    };
    const { server, turn } = await turnOver(api, () => "done", { more: { budget } });
    expect(await turn.end).toMatchObject({ kind: "ok", text: "done" });
    expect(JSON.stringify(server.requests[0]?.body)).toContain(":1234");
    expect(settled).toEqual([120]);
  },
);

test("a turn that exceeds its budget ends with the budget's code and text", async () => {
  const refused = { kind: "refused", code: "budget_used", error: "nothing is left" } as const;
  const budget: ModelBudget = { reserve: async () => refused, settle: async () => {} };
  const { server, turn } = await turnOver("anthropic-messages", () => "done", { more: { budget } });
  expect(await turn.end).toMatchObject({ kind: "error", code: "budget_used", error: "nothing is left" });
  expect(server.requests).toEqual([]);
});

test("S1, S2: the system prompt does not depend on the time of day, and the runtime's context comes last", () => {
  const parts = {
    agentId: "a",
    agentName: "Ada",
    sessionKey: "main",
    workspace: "/w",
    toolNames: ["sessions_send"],
  };
  const prompt = joinPrompt(promptParts({ ...parts, instructions: "Be kind.", context: "Heading\n\nmore" }));
  expect(prompt).toBe(
    joinPrompt(promptParts({ ...parts, instructions: "Be kind.", context: "Heading\n\nmore" })),
  );
  expect(prompt.endsWith("\n\nBe kind.\n\nHeading\n\nmore")).toBe(true);
  expect(prompt).toContain('"a" (Ada)');
});
