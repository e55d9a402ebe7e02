// Owns the delivery of live events inside the process. A hint only: a listener that misses one reads the row.
// B1: a listener that throws harms no other listener and no run.

import type { LiveEvent } from "../core/event.ts";
import type { Log } from "../world.ts";

export interface Bus {
  publish(event: LiveEvent): void;
  /** Returns the function that takes the listener off again. */
  subscribe(listener: (event: LiveEvent) => void): () => void;
}

export function createBus(log: Log): Bus {
  const listeners = new Set<(event: LiveEvent) => void>();
  return {
    publish(event) {
      for (const listener of listeners) {
        try {
          listener(event);
        } catch (error) {
          log.error({ err: error, event: event.kind }, "an event listener failed");
        }
      }
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
