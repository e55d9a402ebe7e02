// Decides whether a model call fits into its budgets, and how long its answer may be.
// A call reserves its maximum cost. If little of the budget remains, the maximum length of the answer is
// reduced. If too little remains, the call is refused.

import type { Code } from "../shapes/errors.ts";
import type { ModelSettings } from "../shapes/settings/settings.ts";

/** Minimum length of an answer. A call that could only get a shorter one is refused. */
const OUTPUT_MIN_TOKENS = 256;
/**
 * If other calls have reserved so much that the answer would be shorter than this, the call waits for them.
 */
const OUTPUT_GOOD_TOKENS = 4_096;
const MILLION = 1_000_000;

/** Returns whether a run ended because a budget, or another limit of its chain, was used up. */
export function isOverBudget({ code }: { readonly code?: string | undefined }): boolean {
  return code === "budget_used" || code === "chain_limit";
}

/** An amount of tokens, and of money in USD. */
export interface Amount {
  readonly tokens: number;
  readonly cost: number;
}

export interface CallSize {
  readonly inputTokens: number;
  readonly maxOutputTokens: number;
  readonly price: ModelSettings["cost"];
}

export interface BudgetState {
  readonly unit: keyof Amount;
  readonly limit: number;
  /** Amount used so far, without reservations. */
  readonly used: number;
  /** Amount that running calls of other runs have reserved. */
  readonly reserved: number;
  readonly code: Extract<Code, "chain_limit" | "budget_used">;
  /** Subject of the error text: `this conversation`, or the agent. */
  readonly owner: string;
  /** Name of the setting that sets the limit. */
  readonly setting: string;
  /** Advice on how to continue after a refusal. */
  readonly advice: string;
}

export type CallVerdict =
  | { readonly kind: "fits"; readonly maxOutputTokens: number; readonly reserved: Amount }
  /** The call will fit when the running calls have finished. */
  | { readonly kind: "wait" }
  | { readonly kind: "refused"; readonly code: BudgetState["code"]; readonly error: string };

/** The budget check that a run performs before each model call. */
export interface ModelBudget {
  /**
   * Waits for parallel calls if necessary, and reserves the maximum amount of this call. `spent` is the
   * amount that the run's earlier calls have used.
   */
  reserve(call: CallSize, spent: Amount): Promise<Exclude<CallVerdict, { kind: "wait" }>>;
  /** Replaces the reservation by the amount that the run has actually spent. */
  settle(spent: Amount): Promise<void>;
}

function inputPrice({ input, cacheWrite }: ModelSettings["cost"]): number {
  return Math.max(input, cacheWrite);
}

/**
 * Returns the maximum length of an answer that fits into a budget. Negative if even the input does not fit.
 */
function outputRoom(call: CallSize, unit: keyof Amount, left: number): number {
  if (unit === "tokens") return Math.floor(left - call.inputTokens);
  const { output } = call.price;
  const rest = left * MILLION - call.inputTokens * inputPrice(call.price);
  if (output > 0) return Math.floor(rest / output);
  return rest >= 0 ? Number.POSITIVE_INFINITY : -1;
}

function refusalOf({ unit, limit, used, ...told }: BudgetState): CallVerdict {
  const amount = unit === "tokens" ? `used ${used} tokens` : `cost ${used.toFixed(4)} USD`;
  const text = `${told.owner} has ${amount}, and ${told.setting} is ${limit}`;
  const error = `${text}: too little is left for another model call. ${told.advice}`;
  return { kind: "refused", code: told.code, error };
}

/** Checks a call against all budgets that apply to it. */
export function judgeCall(call: CallSize, budgets: readonly BudgetState[]): CallVerdict {
  const least = Math.min(OUTPUT_MIN_TOKENS, call.maxOutputTokens);
  let maxOutputTokens = call.maxOutputTokens;
  let waits = false;
  for (const budget of budgets) {
    const left = budget.limit - budget.used;
    const alone = outputRoom(call, budget.unit, left);
    if (alone < least) return refusalOf(budget);
    const now = outputRoom(call, budget.unit, left - budget.reserved);
    if (now < Math.min(OUTPUT_GOOD_TOKENS, call.maxOutputTokens, alone)) waits = true;
    maxOutputTokens = Math.min(maxOutputTokens, now);
  }
  if (waits) return { kind: "wait" };
  const cost = call.inputTokens * inputPrice(call.price) + maxOutputTokens * call.price.output;
  const reserved = { tokens: call.inputTokens + maxOutputTokens, cost: cost / MILLION };
  return { kind: "fits", maxOutputTokens, reserved };
}
