// Decides whether a model call fits the budgets that it counts against, and how long its answer may be.
// BU1: a call reserves the most that it can cost. The answer is shortened to what is left; a call for which
//      too little is left is refused.

import type { Code } from "./errors.ts";
import type { ModelSettings } from "./settings.ts";

/** Shorter answers than this are of no use. */
const OUTPUT_MIN_TOKENS = 256;
/** A call waits for parallel ones to end rather than have its answer cut to less than this. */
const OUTPUT_GOOD_TOKENS = 4_096;
const MILLION = 1_000_000;

/** Tokens, and money in USD. */
export interface Amount {
  readonly tokens: number;
  readonly cost: number;
}

/** The most that a model call can use. */
export interface CallSize {
  readonly inputTokens: number;
  readonly maxOutputTokens: number;
  readonly price: ModelSettings["cost"];
}

/** A budget at the moment of a call. */
export interface BudgetState {
  readonly unit: keyof Amount;
  readonly limit: number;
  /** Used by everything but reservations. */
  readonly used: number;
  /** Held for the calls of other runs that are in progress. */
  readonly reserved: number;
  readonly code: Extract<Code, "chain_limit" | "budget_used">;
  /** Begins the error: `this conversation`, or the agent. */
  readonly owner: string;
  /** The setting of the limit. */
  readonly setting: string;
  /** Tells how to go on. */
  readonly advice: string;
}

export type CallVerdict =
  | { readonly kind: "fits"; readonly maxOutputTokens: number; readonly reserved: Amount }
  /** Enough is left once the calls in progress have ended. */
  | { readonly kind: "wait" }
  | { readonly kind: "refused"; readonly code: BudgetState["code"]; readonly error: string };

/** The budget check that a run makes before each model call. */
export interface ModelBudget {
  /** Reserves the most that a call can use. Waits for parallel calls. `spent`: by the run's earlier ones. */
  reserve(call: CallSize, spent: Amount): Promise<Exclude<CallVerdict, { kind: "wait" }>>;
  /** Replaces the reservation with what the run has really spent. */
  settle(spent: Amount): Promise<void>;
}

function inputPrice({ input, cacheWrite }: ModelSettings["cost"]): number {
  return Math.max(input, cacheWrite);
}

/** The longest answer that an amount of a budget pays for; negative if not even the input fits. */
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

/** Judges a call by every budget that it counts against. */
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
