// Implements the engine's model port: the offline model, or a provider with retries. Retries wait on the
// world's clock and are limited (retry.ts). A request is not retried once text was shown.

import { once } from "../../core/once.ts";
import { optional } from "../../core/optional.ts";
import type { World } from "../../world.ts";
import { sleep } from "../loop/abort.ts";
import { rehearsalPort } from "../offline/rehearsal.ts";
import type { ProviderModel } from "./call.ts";
import { withoutHiddenText } from "./hidden-answer.ts";
import { type FailureCode, type ModelCall, type ModelOutcome, type ModelPort, usageOf } from "./model.ts";
import { judge } from "./retry.ts";

/**
 * Opens the port for every model of the settings. Loads a provider's code at its first call. `called`: called
 * after each model call. `offlineThinkMs`: time before each answer of the offline model.
 */
export function openModelPort(
  world: World,
  called: (call: ModelCall) => void = () => {},
  offlineThinkMs = 0,
): ModelPort {
  const offline = rehearsalPort(world, offlineThinkMs);
  return withoutHiddenText({
    async call(request, onText, signal, log = world.log) {
      const { model } = request;
      const begun = world.clock.monotonic();
      const outcome =
        model.kind === "offline"
          ? await offline.call(request, onText, signal)
          : await callProvider({ ...world, log }, model, request, onText, signal);
      const ms = world.clock.monotonic() - begun;
      const usage = usageOf(outcome);
      called({ ref: model.ref, outcome: outcome.kind, ms, ...optional({ usage }) });
      return outcome;
    },
  });
}

/** Codes of final failures, by the status of the provider. Not found is the model, or the whole address. */
const CODES_BY_STATUS: Readonly<Record<number, FailureCode>> = {
  401: "model_unauthorized",
  404: "invalid_model",
};

const loadProvider = once(() => import("./provider-request.ts"));

async function callProvider(
  world: World,
  model: ProviderModel,
  ...[request, onText, signal]: Parameters<ModelPort["call"]>
): Promise<ModelOutcome> {
  const { requestOnce } = await loadProvider();
  const triesMax = model.provider.maxRetries + 1;
  const { pauseRetry: pauseBefore = (pause) => pause() } = request;
  for (let tries = 1; ; tries++) {
    if (signal.aborted) return { kind: "aborted" };
    const outcome = await requestOnce(world, model, request, onText, signal);
    if (outcome.kind === "too large") {
      const { kind, ...rest } = outcome;
      return { kind: "failed", code: "answer_too_large", ...rest };
    }
    if (outcome.kind !== "failed") return outcome;
    const { failure, partial } = outcome;
    const verdict = judge(failure, { tries, triesMax }, world.random(), world.clock.now());
    switch (verdict.kind) {
      case "overflow":
        return { kind: "overflow", error: failure.error };
      case "refused":
        return { ...verdict, error: failure.error };
      case "final":
        return {
          kind: "failed",
          error: verdict.error,
          ...optional({ code: CODES_BY_STATUS[failure.status ?? 0] }),
          ...optional({ partial, isPassing: verdict.isPassing }),
        };
      case "retry":
        world.log.warn(
          { model: model.ref, tries, retryInMs: verdict.afterMs, why: failure.error },
          "model retry",
        );
        request.onRetry?.({
          attempt: tries,
          of: triesMax - 1,
          delayMs: verdict.afterMs,
          error: failure.error,
        });
        await pauseBefore(() => sleep(world.clock, verdict.afterMs, signal), verdict.afterMs);
    }
  }
}
