// Wraps a model port so that it checks the run's budgets before each call.

import type { Amount, ModelBudget } from "../../core/rules/budget.ts";
import type { Usage } from "../../core/shapes/message.ts";
import { inputCeiling } from "../loop/view.ts";
import { type ModelPort, type ModelRequest, usageOf } from "./model.ts";

const amountOf = (usage: Usage | undefined): Amount => ({
  tokens: usage?.totalTokens ?? 0,
  cost: usage?.cost.total ?? 0,
});

/** Limits the answer of a request to `maxOutputTokens`. */
export function limitAnswer(request: ModelRequest, maxOutputTokens: number): ModelRequest {
  const { model } = request;
  if (maxOutputTokens >= model.settings.maxOutputTokens) return request;
  return { ...request, model: { ...model, settings: { ...model.settings, maxOutputTokens } } };
}

/** Returns a port that checks `budget`. `spent`: usage of the run's earlier calls. */
export function budgetedPort(port: ModelPort, budget: ModelBudget, spent: () => Usage): ModelPort {
  return {
    async call(request, onText, signal, log) {
      const { maxOutputTokens, cost: price } = request.model.settings;
      const before = amountOf(spent());
      const size = { inputTokens: inputCeiling(request), maxOutputTokens, price };
      const verdict = await budget.reserve(size, before);
      if (verdict.kind === "refused") return { ...verdict, kind: "failed" };
      const outcome = await port.call(limitAnswer(request, verdict.maxOutputTokens), onText, signal, log);
      const used = amountOf(usageOf(outcome));
      await budget.settle({ tokens: before.tokens + used.tokens, cost: before.cost + used.cost });
      return outcome;
    },
  };
}
