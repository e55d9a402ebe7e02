// The decision about one model call: its answer limit, a wait, or a refusal.

import fc from "fast-check";
import { expect, test } from "vitest";
import { type BudgetState, type CallSize, judgeCall } from "../../../src/core/rules/budget.ts";

const PRICE = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const CALL: CallSize = { inputTokens: 1_000, maxOutputTokens: 8_000, price: PRICE };

function budget(unit: "tokens" | "cost", limit: number, used = 0, reserved = 0): BudgetState {
  const told = { owner: "this conversation", setting: "maxChainCost", advice: "Raise it." };
  return { unit, limit, used, reserved, code: "chain_limit", ...told };
}

test("a model call that fits reserves its input at the highest price and its whole output limit", () => {
  const cost = (1_000 * 3.75 + 8_000 * 15) / 1_000_000;
  const reserved = { tokens: 9_000, cost };
  expect(judgeCall(CALL, [budget("cost", 1)])).toEqual({ kind: "fits", maxOutputTokens: 8_000, reserved });
});

test("the output limit of a call is lowered to the rest of the tightest budget", () => {
  const budgets = [budget("cost", 1), budget("tokens", 10_000, 8_000)];
  expect(judgeCall(CALL, budgets)).toMatchObject({ kind: "fits", maxOutputTokens: 1_000 });
});

test("if the rest of a budget is too small for a useful answer, a call is refused, with the setting and advice", () => {
  expect(judgeCall(CALL, [budget("tokens", 10_000, 8_800)])).toEqual({
    kind: "refused",
    code: "chain_limit",
    error:
      "this conversation has used 8800 tokens, and maxChainCost is 10000: " +
      "too little is left for another model call. Raise it.",
  });
});

test("if parallel calls have reserved the budget that a call needs, the call waits", () => {
  expect(judgeCall(CALL, [budget("tokens", 10_000, 0, 9_000)])).toEqual({ kind: "wait" });
  expect(judgeCall(CALL, [budget("tokens", 10_000, 0, 3_000)])).toMatchObject({ maxOutputTokens: 6_000 });
});

test("a model without a price is limited by tokens only", () => {
  const free: CallSize = { ...CALL, price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
  expect(judgeCall(free, [budget("cost", 0.01, 0.005)])).toMatchObject({ maxOutputTokens: 8_000 });
});

test("I8: no sequence of accepted calls exceeds a budget", () => {
  const amount = fc.integer({ min: 1, max: 20_000 });
  fc.assert(
    fc.property(
      amount,
      amount,
      fc.array(fc.tuple(amount, amount), { maxLength: 20 }),
      (limit, part, sizes) => {
        let used = 0;
        let reserved = 0;
        for (const [inputTokens, maxOutputTokens] of sizes) {
          const call = { ...CALL, inputTokens, maxOutputTokens };
          const verdict = judgeCall(call, [budget("tokens", limit, used, reserved)]);
          if (verdict.kind !== "fits") continue;
          expect(used + reserved + verdict.reserved.tokens).toBeLessThanOrEqual(limit);
          if (verdict.reserved.tokens % 2 === 0) reserved += verdict.reserved.tokens;
          else used += Math.min(part, verdict.reserved.tokens);
        }
      },
    ),
  );
});
