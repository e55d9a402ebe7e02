// Decides whether a model call fits its budgets, and how long its answer may be.
// BU1: a call reserves the most that it can cost. The answer limit is lowered to the remaining budget. A call
// is refused if too little remains.

import type { Code } from "../shapes/errors.ts";
import type { ModelSettings } from "../shapes/settings/settings.ts";

/** Shorter answers are useless. */
const OUTPUT_MIN_TOKENS = 256;
/** A call waits for parallel calls rather than accept an answer limit below this. */
const OUTPUT_GOOD_TOKENS = 4_096;
const MILLION = 1_000_000;

/** Tokens, and money in USD. */
export interface Amount {
  readonly tokens: number;
  readonly cost: number;
}

/** The most that one model call can use. */
export interface CallSize {
  readonly inputTokens: number;
  readonly maxOutputTokens: number;
  readonly price: ModelSettings["cost"];
}

/** The state of a budget when a call is judged. */
export interface BudgetState {
  readonly unit: keyof Amount;
  readonly limit: number;
  /** Used so far, without reservations. */
  readonly used: number;
  /** Reserved for the calls of other runs in progress. */
  readonly reserved: number;
  readonly code: Extract<Code, "chain_limit" | "budget_used">;
  /** First words of the error: `this conversation`, or the agent. */
  readonly owner: string;
  /** Name of the setting that sets the limit. */
  readonly setting: string;
  /** How to continue after a refusal. */
  readonly advice: string;
}

export type CallVerdict =
  | { readonly kind: "fits"; readonly maxOutputTokens: number; readonly reserved: Amount }
  /** The call fits after the calls in progress have finished. */
  | { readonly kind: "wait" }
  | { readonly kind: "refused"; readonly code: BudgetState["code"]; readonly error: string };

/** The budget check that a run makes before each model call. */
export interface ModelBudget {
  /**
   * Reserves the most that a call can use and waits for parallel calls. `spent`: used by earlier calls of the
   * run.
   */
  reserve(call: CallSize, spent: Amount): Promise<Exclude<CallVerdict, { kind: "wait" }>>;
  /** Replaces the reservation with the amount that the run has really spent. */
  settle(spent: Amount): Promise<void>;
}

function inputPrice({ input, cacheWrite }: ModelSettings["cost"]): number {
  return Math.max(input, cacheWrite);
}

/** Returns the longest answer that fits a budget. Negative if the input alone does not fit. */
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

/** Judges a call against every budget that applies. */
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
