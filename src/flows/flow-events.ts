// Owns the live event of a flow's step: told to both parties, each under its own key, so that the gate
// decides for each.

import type { LiveEvent } from "../core/event.ts";
import type { Unit } from "../engine/unit.ts";

type FlowEvent = Extract<LiveEvent, { kind: "flow" }>;

export function publishFlow(unit: Unit, step: Omit<FlowEvent, "kind" | "sessionKey" | "atMs">): void {
  for (const sessionKey of new Set([step.from, step.to])) {
    unit.publish({ kind: "flow", sessionKey, atMs: unit.now, ...step });
  }
}
