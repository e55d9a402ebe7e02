// Delivers live events inside the process and forwards them to other processes. An event is only a hint: a
// listener that misses one finds the change in the store's rows. A listener that throws affects no other
// listener and no run. Events from other processes are never forwarded.
// B3: the end of a run is published once, even if this process learns of it in two ways. After it, no event
//     of the run's execution is published.

import { evictOldest } from "../core/bounded.ts";
import { optional } from "../core/optional.ts";
import type { LiveEvent } from "../core/shapes/event.ts";
import type { Log } from "../world.ts";

/** Maximum number of ended runs to remember. Late hints about these runs are dropped. */
const ENDED_MAX = 5_000;

/** `here`: the event happened in this process, not in another one. */
type Listener = (event: LiveEvent, here: boolean) => void;

export type SharedBus = ReturnType<typeof createBus>;
export type Bus = Omit<SharedBus, "hear" | "showsText">;

/**
 * The events of the execution of a run, which must not be published after the run's end. Notes, and events of
 * flows and deliveries, may be.
 */
const OF_EXECUTION: readonly LiveEvent["kind"][] = ["run_started", "text", "thinking", "tool", "run_ended"];

/**
 * `forward` sends an event to the other processes; `follow` is called when this process begins to show live
 * text. Default: nothing.
 */
export function createBus(log: Log, forward: (event: LiveEvent) => void = () => {}, follow = (): void => {}) {
  const shows = new Set<object>();
  const listeners = new Set<Listener>();
  const ended = new Set<string>();
  const tell = (event: LiveEvent, here: boolean): void => {
    const { kind, sessionKey } = event;
    const runId = "runId" in event ? event.runId : undefined;
    if (OF_EXECUTION.includes(kind) && runId !== undefined && ended.has(runId)) return;
    if (kind === "run_ended" && runId !== undefined) {
      ended.add(runId);
      evictOldest(ended, ENDED_MAX);
    }
    for (const listener of listeners) {
      try {
        listener(event, here);
      } catch (error) {
        const chainId = "chainId" in event ? event.chainId : undefined;
        const about = { event: kind, sessionKey, ...optional({ runId, chainId }) };
        log.error({ err: error, ...about }, "an event listener failed");
      }
    }
  };
  return {
    /** Publishes an event of another process to the listeners in this one. */
    hear: (event: LiveEvent) => tell(event, false),
    /** Publishes to all listeners in every process. */
    publish(event: LiveEvent): void {
      tell(event, true);
      forward(event);
    },
    /**
     * Returns whether the end of this run was published in this process. Only the last `ENDED_MAX` runs are
     * remembered.
     */
    hasEnded: (runId: string) => ended.has(runId),
    /** Returns whether somebody has called `showText`. */
    showsText: () => shows.size > 0,
    /**
     * Makes the other processes send the live text of their runs to this one, until the returned function is
     * called. Without it, a listener hears only the live text of this process.
     */
    showText(): () => void {
      const one = {};
      if (shows.add(one).size === 1) follow();
      return () => shows.delete(one);
    },
    /** Returns a function that removes the listener. */
    subscribe(listener: Listener): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
