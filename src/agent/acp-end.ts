// Owns how a prompt of an ACP agent ends a run: its stop reason, its last words, what it used.

import type { Result } from "../core/errors.ts";
import { textOf, type Usage, ZERO_USAGE } from "../core/message.ts";
import type { AcpAnswer } from "./acp-connection.ts";
import type { AcpTurn, TurnPort } from "./acp-turn.ts";
import type { TurnEnd } from "./loop.ts";

interface EndPort extends Pick<TurnPort, "append" | "agentId"> {
  /** USD of this prompt. */
  readonly spent: number;
  /** Of the session, before this run. */
  readonly contextTokens: number;
}

const WHY: Readonly<Record<string, string>> = {
  max_turn_requests: "it stopped at its own limit of model requests",
  refusal: "it refused to go on",
  cancelled: "it says that the turn was cancelled, and nobody here cancelled it",
};

/** Tokens as the agent reports them for this prompt; money as its total has grown. */
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

/** Writes what is left to be written, and says how the run ended. Throws what `append` throws. */
export async function endOfTurn(turn: AcpTurn, answer: Result<AcpAnswer>, port: EndPort): Promise<TurnEnd> {
  const said = answer.ok ? answer.value : undefined;
  const usage = usageOf(said, port.spent);
  const contextTokens = said?.contextTokens ?? port.contextTokens;
  const why = answer.ok ? WHY[answer.value.stopReason] : answer.error;
  const stopReason = why !== undefined ? "error" : said?.stopReason === "max_tokens" ? "length" : "stop";
  const error = why === undefined ? undefined : `agent "${port.agentId}": ${why}`;
  const last = await turn.end(stopReason, usage, error);
  if (last !== undefined) await port.append(last);
  const own = last === undefined ? "" : textOf(last);
  const text = own.trim() === "" ? turn.lastText() : own;
  if (error === undefined) return { kind: "ok", text, usage, contextTokens };
  const kept = text === "" ? {} : { text };
  return { kind: "error", code: "run_failed", error, usage, contextTokens, ...kept };
}
