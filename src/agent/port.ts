// Owns the model port that the engine is given: the offline model, or a provider with retries.
// T1: retries wait on the world's clock, are bounded (retry.ts), and never follow text that was shown.

import type { World } from "../world.ts";
import { sleep } from "./abort.ts";
import type { ModelOutcome, ModelPort } from "./model.ts";
import { type ProviderModel, requestOnce } from "./provider-request.ts";
import { rehearsalPort } from "./rehearsal.ts";
import { judge } from "./retry.ts";

/** The port over every model that settings can name. Loads a provider's code at its first call. */
export function openModelPort(world: World): ModelPort {
  const offline = rehearsalPort(world);
  return {
    call: (request, onText, signal) =>
      request.model.kind === "offline"
        ? offline.call(request, onText, signal)
        : callProvider(world, request.model, request, onText, signal),
  };
}

async function callProvider(
  world: World,
  model: ProviderModel,
  ...[request, onText, signal]: Parameters<ModelPort["call"]>
): Promise<ModelOutcome> {
  for (let tries = 1; ; tries++) {
    if (signal.aborted) return { kind: "aborted" };
    const outcome = await requestOnce(world, model, request, onText, signal);
    if (outcome.kind !== "failed") return outcome;
    const { failure, partial } = outcome;
    const verdict = judge(failure, tries, world.random(), world.clock.now());
    switch (verdict.kind) {
      case "overflow":
        return { kind: "overflow", error: failure.error };
      case "final":
        return { kind: "failed", error: verdict.error, ...(partial === undefined ? {} : { partial }) };
      case "retry":
        world.log.warn(
          { model: model.ref, tries, afterMs: verdict.afterMs, error: failure.error },
          "model retry",
        );
        if (!(await sleep(world.clock, verdict.afterMs, signal))) return { kind: "aborted" };
    }
  }
}
