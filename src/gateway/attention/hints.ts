// Decides which live events may change the attention list, and sends each connection at most one hint per
// interval. A hint has no content: the client reads the list again.

import type { LiveEvent } from "../../core/shapes/event.ts";
import type { Clock } from "../../world.ts";
import { type EncodedEvent, encodeEvent } from "../socket/outlet.ts";

/** Changes within this interval share one hint, for example when 30 jobs start at the same time. */
const GATHER_MS = 250;

const HINT: EncodedEvent = encodeEvent("attention", {}, { replaces: "attention" });

interface Hinted {
  event(event: EncodedEvent): void;
}

/** Right to the events of a session, or to its deliveries. */
type HintAccess = "events" | "deliveries";

/**
 * Returns the right that a client needs to see this change in `attention.list`, or undefined if the list does
 * not change.
 */
function concerns(event: LiveEvent): HintAccess | undefined {
  if (event.kind === "session" || event.kind === "permission") return "events";
  const isForAdmins = event.kind === "outbox" || (event.kind === "feature" && event.isForAdmins);
  return isForAdmins ? "deliveries" : undefined;
}

export class AttentionHints {
  readonly #clock: Clock;
  readonly #waiting = new Set<Hinted>();
  #timer: { cancel(): void } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records an event for the connections that `watching` returns: those with this right to the session. */
  note(event: LiveEvent, watching: (access: HintAccess, sessionKey: string) => Iterable<Hinted>): void {
    const access = concerns(event);
    if (access === undefined) return;
    for (const listener of watching(access, event.sessionKey)) this.#waiting.add(listener);
    if (this.#waiting.size === 0) return;
    this.#timer ??= this.#clock.after(GATHER_MS, () => {
      this.#timer = undefined;
      const told = [...this.#waiting];
      this.#waiting.clear();
      for (const listener of told) listener.event(HINT);
    });
  }

  forget(listener: Hinted): void {
    this.#waiting.delete(listener);
  }

  close(): void {
    this.#timer?.cancel();
    this.#waiting.clear();
  }
}
