// Tests a model with one tiny call, like a run's call but without retries. It ends within the given time;
// nothing is stored. The answer reports the cost, and contains no key.

import { optional } from "../../core/optional.ts";
import type { Usage } from "../../core/shapes/message.ts";
import type { ProviderSettings, ThinkingLevel } from "../../core/shapes/settings/settings.ts";
import { cut } from "../../core/text/cut.ts";
import { timeLimit } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import { learnedQuirks } from "./learned.ts";
import { resolveModel } from "./model.ts";
import { type RequestOutcome, requestOnce } from "./provider-request.ts";
import type { RequestFailure } from "./retry.ts";

/** Output limit of the test call: the smallest one that every provider accepts. */
const OUTPUT_MAX_TOKENS = 16;
const ANSWER_MAX_BYTES = 64 * 1024;
const THINKING: ThinkingLevel = "off";

export interface ModelTrial {
  readonly usable: boolean;
  /** Message for people. */
  readonly text: string;
  readonly durationMs: number;
  /** Advice after a failure. */
  readonly hint?: string;
  /** Beginning of the model's answer. */
  readonly answer?: string;
  readonly usage?: Usage;
}

const ANSWER_SHOWN_MAX_CHARS = 200;
const UNAUTHORIZED = [401, 403];
const NOT_FOUND = 404;
const TOO_MANY = 429;
const SERVER_FAILED = 500;

/** Returns what a person can do about a failed request. */
function hintFor({ status }: RequestFailure, { id }: ProviderSettings): string {
  const setting = `models.providers.${id}`;
  if (status === undefined)
    return `Check ${setting}.baseUrl, and whether the server runs and can be reached.`;
  if (UNAUTHORIZED.includes(status)) return `Check the key (${setting}.apiKey) and its rights.`;
  if (status === NOT_FOUND) return `Check the id of the model, and ${setting}.baseUrl.`;
  if (status === TOO_MANY)
    return "Wait and try again. If the error remains, check limits and credit of the account.";
  if (status >= SERVER_FAILED) return "Try again later: the provider has a problem.";
  return `Check ${setting}.`;
}

/** Returns the result of the one request. `seconds`: its time limit. */
function trialOf(
  outcome: RequestOutcome,
  provider: ProviderSettings,
  { durationMs, seconds }: { readonly durationMs: number; readonly seconds: number },
): ModelTrial {
  switch (outcome.kind) {
    case "aborted": {
      const hint = "Try again. A local server may have to load the model first.";
      const text = `no answer within ${seconds} s`;
      return { usable: false, text, durationMs, hint, ...optional({ usage: outcome.partial?.usage }) };
    }
    case "failed": {
      const { failure, partial } = outcome;
      const hint = hintFor(failure, provider);
      return { usable: false, text: failure.error, durationMs, hint, ...optional({ usage: partial?.usage }) };
    }
    case "too large":
      return {
        usable: false,
        text: outcome.error,
        durationMs,
        ...optional({ usage: outcome.partial?.usage }),
      };
    case "message": {
      const { usage, content, model } = outcome.message;
      const said = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
      const took = (durationMs / 1000).toFixed(1);
      const taught = learnedQuirks(provider, model).map((says) => `; form of requests: ${says}`);
      const cost = `${usage.totalTokens} tokens${usd(usage.cost.total)}`;
      const text = `answered in ${took} s (${cost})${taught.join("")}`;
      return { usable: true, text, durationMs, usage, answer: cut(said.trim(), ANSWER_SHOWN_MAX_CHARS) };
    }
  }
}

const usd = (cost: number): string => (cost > 0 ? `, $${cost.toFixed(6)}` : "");

/** Asks the model `ref` for one word. */
export async function tryModel(
  world: World,
  providers: readonly ProviderSettings[],
  ref: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<ModelTrial> {
  const found = resolveModel(providers, ref);
  if (!found.ok) return { usable: false, text: found.error, durationMs: 0 };
  if (found.value.kind === "offline") return { usable: true, text: "built in", durationMs: 0 };
  const { settings, provider } = found.value;
  const model = { ...found.value, settings: { ...settings, maxOutputTokens: OUTPUT_MAX_TOKENS } };
  const { clock, ids } = world;
  using limit = timeLimit(clock, timeoutMs, { signal, keep: "alive" });
  const begun = clock.monotonic();
  const content = [{ type: "text", text: "Answer with the word ok." }] as const;
  const request = {
    model,
    system: "This is a connection test. Answer with one word.",
    entries: [{ id: "trial", role: "user", content, timestamp: clock.now() }] as const,
    tools: [],
    thinking: THINKING,
    limits: { maxAnswerBytes: ANSWER_MAX_BYTES, maxAnswerToolCalls: 1 },
    sessionId: ids.uuid(),
  };
  const outcome = await requestOnce(world, model, request, () => {}, limit.signal);
  const durationMs = Math.round(clock.monotonic() - begun);
  return trialOf(outcome, provider, { durationMs, seconds: timeoutMs / 1000 });
}
