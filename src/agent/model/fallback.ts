// Wraps model ports: when a model has failed permanently, calls the fallback models in order. An answer that
// was partly shown is not repeated with another model. A call that a budget refused is not repeated, either.

import type { Usage } from "../../core/shapes/message.ts";
import { type ModelPort, type ResolvedModel, usageOf } from "./model.ts";

/** Failures that another model may not have. */
const OF_MODEL: readonly string[] = ["model_unauthorized", "invalid_model"];

/**
 * Returns a port that tries the fallback models, too. `used`: called with each fallback model that is used,
 * and the usage of the failed call before it.
 */
export function fallbackPort(
  port: ModelPort,
  models: readonly ResolvedModel[],
  used: (model: ResolvedModel, before: Usage | undefined) => void,
): ModelPort {
  if (models.length === 0) return port;
  return {
    async call(request, onText, signal, log) {
      let shown = false;
      const show: typeof onText = (delta) => {
        shown = (shown && delta.offset > 0) || delta.text.trim() !== "";
        onText(delta);
      };
      let outcome = await port.call(request, show, signal, log);
      for (const model of models) {
        if (outcome.kind !== "failed" || shown || signal.aborted) break;
        if (outcome.code !== undefined && !OF_MODEL.includes(outcome.code)) break;
        if (model.ref === request.model.ref) continue;
        const before = outcome.error;
        log?.warn({ model: model.ref, why: before }, "a fallback model is used");
        used(model, usageOf(outcome));
        outcome = await port.call({ ...request, model }, show, signal, log);
        if (outcome.kind === "failed") outcome = { ...outcome, error: `${before}; then ${outcome.error}` };
      }
      return outcome;
    },
  };
}
