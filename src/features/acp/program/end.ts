// Turns the end of an ACP prompt into the end of a run: stop reason, last text, usage.

import type { TurnEnd } from "../../../agent/loop/loop.ts";
import type { Result } from "../../../core/shapes/errors.ts";
import { textOf, type Usage, ZERO_USAGE } from "../../../core/shapes/message.ts";
import { head } from "../../../core/text/cut.ts";
import type { AcpAnswer } from "./connection.ts";
import type { AcpTurn, TurnPort } from "./turn.ts";

interface EndPort extends Pick<TurnPort, "append" | "agentId"> {
  /** Cost of this prompt in USD. */
  readonly spent: number;
  /** Context tokens of the session before this run. */
  readonly contextTokens: number;
}

const WHY: Readonly<Record<string, string>> = {
  max_turn_requests: "it stopped at its own limit of model requests",
  refusal: "it refused to continue",
  cancelled: "it reports a cancelled turn, but the gateway did not cancel it",
};

const NO_ANSWER = "it ended without an answer";

const DENIED_SHOWN_MAX = 3;
const ERROR_MAX_CHARS = 1_000;

/** Returns a sentence about the denied calls, or "" if there are none. */
function deniedWords(denied: readonly string[]): string {
  if (denied.length === 0) return "";
  const shown = denied.slice(0, DENIED_SHOWN_MAX).map((title) => `"${title}"`);
  const more = denied.length > shown.length ? ` and ${denied.length - shown.length} more` : "";
  return `it was denied permission for ${shown.join(", ")}${more}: see runtime.permissions`;
}

/**
 * Returns why a prompt failed, or undefined if it succeeded. A turn that ends without text after a denied
 * call has failed, too.
 */
function failureOf(turn: AcpTurn, answer: Result<AcpAnswer>): string | undefined {
  if (!answer.ok) return answer.error;
  const { stopReason, denied, hasFailed } = answer.value;
  const silent = denied.length > 0 && turn.isSilent ? NO_ANSWER : undefined;
  const failed = hasFailed ? `it reports an error: ${head(turn.shown, ERROR_MAX_CHARS)}` : undefined;
  const why = WHY[stopReason] ?? failed ?? silent;
  return why === undefined ? undefined : [why, deniedWords(denied)].filter(Boolean).join("; ");
}

/**
 * Returns the usage: the tokens that the agent reported for this prompt, and the increase of its total cost.
 */
function usageOf(answer: AcpAnswer | undefined, spent: number): Usage {
  const cost = { ...ZERO_USAGE.cost, total: spent };
  const told = answer?.usage;
  if (told == null) return { ...ZERO_USAGE, cost };
  return {
    input: told.inputTokens,
    output: told.outputTokens,
    cacheRead: told.cachedReadTokens ?? 0,
    cacheWrite: told.cachedWriteTokens ?? 0,
    totalTokens: told.totalTokens,
    cost,
  };
}

/** Writes the remaining entries and returns the end of the run. Errors of `append` are thrown. */
export async function endOfTurn(turn: AcpTurn, answer: Result<AcpAnswer>, port: EndPort): Promise<TurnEnd> {
  const said = answer.ok ? answer.value : undefined;
  const usage = usageOf(said, port.spent);
  const contextTokens = said?.contextTokens ?? port.contextTokens;
  const why = failureOf(turn, answer);
  const stopReason = why !== undefined ? "error" : said?.stopReason === "max_tokens" ? "length" : "stop";
  const tell = (reason: string): string => `agent "${port.agentId}": ${reason}`;
  const error = why === undefined ? undefined : tell(why);
  const last = await turn.end(stopReason, usage, error);
  if (last !== undefined) await port.append(last);
  const own = last === undefined ? "" : textOf(last);
  const text = own.trim() === "" ? turn.lastText() : own;
  const isCut = stopReason === "length";
  if (error === undefined && text !== "") return { kind: "ok", text, isCut, usage, contextTokens };
  const kept = text === "" ? {} : { text };
  return {
    kind: "error",
    code: "run_failed",
    error: error ?? tell(NO_ANSWER),
    usage,
    contextTokens,
    ...kept,
  };
}
