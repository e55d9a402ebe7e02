// Tests a model with one tiny call, like a run's call but without retries. It ends within the given time;
// nothing is stored. The answer reports the cost, and contains no key.

import type { ProviderSettings, ThinkingLevel } from "../../core/shapes/settings/settings.ts";
import type { World } from "../../world.ts";
import { resolveModel } from "./model.ts";
import { requestOnce } from "./provider-request.ts";

/** Output limit of the test call: the smallest one that every provider accepts. */
const OUTPUT_MAX_TOKENS = 16;
const ANSWER_MAX_BYTES = 64 * 1024;
const THINKING: ThinkingLevel = "off";

export interface ModelTrial {
  readonly usable: boolean;
  /** Message for people. */
  readonly text: string;
}

const usd = (cost: number): string => (cost > 0 ? `, $${cost.toFixed(6)}` : "");

/** Asks the model `ref` for one word. */
export async function tryModel(
  world: World,
  providers: readonly ProviderSettings[],
  ref: string,
  timeoutMs: number,
): Promise<ModelTrial> {
  const found = resolveModel(providers, ref);
  if (!found.ok) return { usable: false, text: found.error };
  if (found.value.kind === "offline") return { usable: true, text: "built in" };
  const { settings } = found.value;
  const model = { ...found.value, settings: { ...settings, maxOutputTokens: OUTPUT_MAX_TOKENS } };
  const late = new AbortController();
  const { clock, ids } = world;
  const timer = clock.at(clock.now() + timeoutMs, () => late.abort(), "alive");
  const begun = clock.monotonic();
  try {
    const content = [{ type: "text", text: "Answer with the word ok." }] as const;
    const request = {
      model,
      system: "You are tried out. Answer with one word.",
      entries: [{ id: "trial", role: "user", content, timestamp: clock.now() }] as const,
      tools: [],
      thinking: THINKING,
      limits: { maxAnswerBytes: ANSWER_MAX_BYTES, maxAnswerToolCalls: 1 },
      sessionId: ids.uuid(),
    };
    const outcome = await requestOnce(world, model, request, () => {}, late.signal);
    if (outcome.kind === "aborted") return { usable: false, text: `no answer within ${timeoutMs / 1000} s` };
    if (outcome.kind === "failed") return { usable: false, text: outcome.failure.error };
    if (outcome.kind === "too large") return { usable: false, text: outcome.error };
    const { usage } = outcome.message;
    const seconds = ((clock.monotonic() - begun) / 1000).toFixed(1);
    return {
      usable: true,
      text: `answered in ${seconds} s (${usage.totalTokens} tokens${usd(usage.cost.total)})`,
    };
  } finally {
    timer.cancel();
  }
}
