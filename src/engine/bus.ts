// Owns the delivery of live events inside the process, and hands them to the wire where there are other
// processes. A hint only: a listener that misses one reads the row.
// B1: a listener that throws harms no other listener and no run.
// B2: what came over the wire is told here and never sent again.
// B3: the end of a run is told once, whichever way it came first; nothing of its execution comes after it.

import { dropOldest } from "../core/bounded.ts";
import type { LiveEvent } from "../core/event.ts";
import type { Log } from "../world.ts";

/** Runs whose end was told, so that a hint which comes late adds nothing. */
const ENDED_MAX = 5_000;

/** `here`: it happened in this process; else another one has told it. */
type Listener = (event: LiveEvent, here: boolean) => void;

export interface Bus {
  /** Tells everybody, in every process. */
  publish(event: LiveEvent): void;
  /** Whether the end of this run was told here, as far as is remembered. */
  hasEnded(runId: string): boolean;
  /** Returns the function that takes the listener off again. */
  subscribe(listener: Listener): () => void;
}

export interface SharedBus extends Bus {
  /** Tells this process what happened in another. */
  hear(event: LiveEvent): void;
}

type OfExecution = Extract<LiveEvent, { kind: "run_started" | "text" | "tool" | "run_ended" }>;

/** What is told of a run up to its end; notes, flows and deliveries come after it too. */
function isOfExecution(event: LiveEvent): event is OfExecution {
  const { kind } = event;
  return kind === "run_started" || kind === "text" || kind === "tool" || kind === "run_ended";
}

/** As far as the event says which they are. */
function aboutOf(event: LiveEvent): object {
  const { sessionKey } = event;
  const runId = "runId" in event && event.runId !== undefined ? { runId: event.runId } : {};
  return { ...runId, sessionKey, ...("chainId" in event ? { chainId: event.chainId } : {}) };
}

/** `forward`: to the other processes. Default: there are none. */
export function createBus(log: Log, forward: (event: LiveEvent) => void = () => {}): SharedBus {
  const listeners = new Set<Listener>();
  const ended = new Set<string>();
  const tell = (event: LiveEvent, here: boolean): void => {
    if (isOfExecution(event) && ended.has(event.runId)) return;
    if (event.kind === "run_ended") {
      ended.add(event.runId);
      dropOldest(ended, ENDED_MAX);
    }
    for (const listener of listeners) {
      try {
        listener(event, here);
      } catch (error) {
        log.error({ err: error, event: event.kind, ...aboutOf(event) }, "an event listener failed");
      }
    }
  };
  return {
    hear: (event) => tell(event, false),
    publish(event) {
      tell(event, true);
      forward(event);
    },
    hasEnded: (runId) => ended.has(runId),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
