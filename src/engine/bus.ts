// Owns the delivery of live events inside the process, and hands them to the wire where there are other
// processes. A hint only: a listener that misses one reads the row.
// B1: a listener that throws harms no other listener and no run.
// B2: what came over the wire is told here and never sent again.

import type { LiveEvent } from "../core/event.ts";
import type { Log } from "../world.ts";

export interface Bus {
  /** Tells everybody, in every process. */
  publish(event: LiveEvent): void;
  /** Returns the function that takes the listener off again. */
  subscribe(listener: (event: LiveEvent) => void): () => void;
}

export interface SharedBus extends Bus {
  /** Tells this process what happened in another. */
  hear(event: LiveEvent): void;
}

/** `forward`: to the other processes. Default: there are none. */
export function createBus(log: Log, forward: (event: LiveEvent) => void = () => {}): SharedBus {
  const listeners = new Set<(event: LiveEvent) => void>();
  const hear = (event: LiveEvent): void => {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        log.error({ err: error, event: event.kind }, "an event listener failed");
      }
    }
  };
  return {
    hear,
    publish(event) {
      hear(event);
      forward(event);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
