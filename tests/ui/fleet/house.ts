// A gateway with agents, models, tokens and nodes for the tests of their views.

import { agentSourcesOf } from "../../../src/config/agent-sources.ts";
import { fail, ok } from "../../../src/core/shapes/errors.ts";
import type { AgentSettings, TokenSettings } from "../../../src/core/shapes/settings/settings.ts";
import { type House, type HouseOptions, openHouse } from "../../gateway/kit.ts";
import { settingsWith } from "../../tools/app.ts";

export const READER = "a-token-that-may-read-only";
export const PARTIAL = "a-token-for-research-only";
const TOKENS: TokenSettings[] = [
  { token: READER, role: "operator", scopes: ["operator.read"] },
  { token: PARTIAL, role: "operator", scopes: ["operator.admin"], sessions: ["agent:research:*"] },
];

function agents(): AgentSettings[] {
  const [first, ...others] = settingsWith().agents;
  if (first === undefined) throw new Error("there is no agent");
  const main: AgentSettings = {
    ...{ ...first, name: "Assistant", model: "offline/rehearsal", fallbackModels: ["local/qwen3-32b"] },
    ...{ thinking: "high", budget: { dailyTokens: 100_000, dailyCost: 2.5 } },
  };
  return [main, ...others];
}

const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

/** Opens a gateway with two models: one answers, and one has an invalid key. */
export function fleet(options: HouseOptions = {}): Promise<House> {
  return openHouse({
    choices: { agents: agents(), tools: { filter: { allow: [], deny: ["exec"] } } },
    gateway: { tokens: TOKENS },
    agentSources: agentSourcesOf({
      agents: { defaults: { thinking: "high" }, list: [{ id: "main", budget: { dailyTokens: 100_000 } }] },
    }),
    models: [
      {
        ...{
          id: "claude-sonnet-4-5",
          name: "Claude Sonnet 4.5",
          provider: "anthropic",
          contextWindow: 200_000,
        },
        ...{ maxOutputTokens: 64_000, reasoning: true, images: true, cost: PRICES },
      },
      {
        ...{ id: "rehearsal", name: "Offline rehearsal", provider: "offline", contextWindow: 200_000 },
        ...{ maxOutputTokens: 8_000, reasoning: false, images: false },
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
      },
    ],
    tryModel: async (ref) =>
      ref === "offline/rehearsal"
        ? ok({
            ...{ usable: true, text: "answered", durationMs: 812, answer: "OK" },
            usage: {
              ...{ input: 12, output: 4, cacheRead: 0, cacheWrite: 0, totalTokens: 16 },
              cost: { input: 0.0001, output: 0.0002, cacheRead: 0, cacheWrite: 0, total: 0.0003 },
            },
          })
        : ref.startsWith("anthropic/")
          ? ok({
              ...{ usable: false, durationMs: 230, text: "the provider says: invalid x-api-key (HTTP 401)" },
              hint: "Check the key (models.providers.anthropic.apiKey) and its rights.",
            })
          : fail("invalid_model", "no such model"),
    ...options,
  });
}
