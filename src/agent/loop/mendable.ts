// Wraps a model port so that it reports a refusal only if the request can be repeated without the part that
// the provider refused. Any other refusal is a failure, after which fallback models are tried.

import type { ModelPort } from "../model/model.ts";
import { hasPart } from "./omission.ts";
import { liveTranscript } from "./view.ts";

export function mendablePort(port: ModelPort): ModelPort {
  return {
    async call(request, ...how) {
      const outcome = await port.call(request, ...how);
      if (outcome.kind !== "refused") return outcome;
      const { messages } = liveTranscript(request.entries);
      if (hasPart(messages, outcome.part, request.thinking)) return outcome;
      return { kind: "failed", error: outcome.error };
    },
  };
}
