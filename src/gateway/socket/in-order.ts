// Handles the events of each session in their order. A long event is handled in steps, and other work runs in
// between. The later events of its session wait meanwhile; those of other sessions do not.

import type { Pace } from "../../core/pace.ts";
import { isLiveText, type LiveEvent } from "../../core/shapes/event.ts";
import type { Log } from "../../world.ts";

/**
 * Maximum number of waiting events in a session. Beyond it, streamed text is dropped: clients get it with the
 * end of the run, or from the transcript.
 */
const WAITING_MAX = 1_000;

export interface OrderParts {
  readonly log: Log;
  /** Returns the pace of work that starts now. */
  pace(): Pace;
  isLong(event: LiveEvent): boolean;
  /** Handles an event in one step. */
  handle(event: LiveEvent): void;
  /** Handles a long event. */
  inSteps(event: LiveEvent, pace: Pace): Promise<void>;
}

export class InOrder {
  readonly #parts: OrderParts;
  /** The waiting events of each session with a long event. */
  readonly #waiting = new Map<string, LiveEvent[]>();

  constructor(parts: OrderParts) {
    this.#parts = parts;
  }

  hear(event: LiveEvent): void {
    const waiting = this.#waiting.get(event.sessionKey);
    if (waiting !== undefined) {
      if (waiting.length < WAITING_MAX || !isLiveText(event)) waiting.push(event);
    } else if (this.#parts.isLong(event)) {
      const begun = [event];
      this.#waiting.set(event.sessionKey, begun);
      void this.#work(event.sessionKey, begun);
    } else this.#parts.handle(event);
  }

  close(): void {
    for (const waiting of this.#waiting.values()) waiting.length = 0;
  }

  async #work(sessionKey: string, waiting: LiveEvent[]): Promise<void> {
    const { log, isLong, handle, inSteps } = this.#parts;
    const pace = this.#parts.pace();
    for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) {
      try {
        if (isLong(event)) await inSteps(event, pace);
        else handle(event);
      } catch (error) {
        log.error({ err: error, event: event.kind, sessionKey }, "an event could not be sent");
      }
      await pace();
    }
    this.#waiting.delete(sessionKey);
  }
}
