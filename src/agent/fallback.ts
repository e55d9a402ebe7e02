// Owns a model port that asks further models, in their order, when one has failed for good.
// FB1: what somebody has seen the beginning of is not begun again by another model, and a refusal of a budget
//      is final.

import type { ModelPort, ResolvedModel } from "./model.ts";

/** `used`: told of each further model that is asked. */
export function fallbackPort(
  port: ModelPort,
  models: readonly ResolvedModel[],
  used: (model: ResolvedModel) => void,
): ModelPort {
  if (models.length === 0) return port;
  return {
    async call(request, onText, signal, log) {
      let shown = false;
      const show: typeof onText = (delta) => {
        shown = true;
        onText(delta);
      };
      let outcome = await port.call(request, show, signal, log);
      for (const model of models) {
        if (outcome.kind !== "failed" || outcome.code !== undefined || shown || signal.aborted) break;
        if (model.ref === request.model.ref) continue;
        const before = outcome.error;
        log?.warn({ model: model.ref, why: before }, "a fallback model is asked");
        used(model);
        outcome = await port.call({ ...request, model }, show, signal, log);
        if (outcome.kind === "failed") outcome = { ...outcome, error: `${before}; then ${outcome.error}` };
      }
      return outcome;
    },
  };
}
