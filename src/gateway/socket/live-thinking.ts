// Sends the thinking of running runs, as deltas, to clients with `thinking-deltas`, redacted like text (I14).
// The thinking of reply and announce turns is not sent. The last word of a thought is only in the stored
// message: it is held back until more text shows that it is not part of a credential.
// A thought is dropped when its message is stored or its run ends. Clients then read the transcript.

import type { AgentEvent } from "../../contract/events.ts";
import type { LiveTextEvent } from "../../core/shapes/event.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { Clock } from "../../world.ts";
import { GrowingText, UNREAD_CHARS_MAX } from "./growing-text.ts";
import { textMarks } from "./live-texts.ts";
import { type EncodedEvent, encodeEvent } from "./outlet.ts";
import type { RunTracks } from "./run-tracks.ts";

/** A client that may get live thinking. */
export interface ThinkingListener {
  /** Whether the client requested thinking. */
  readonly thinkingDeltas: boolean;
  event(event: EncodedEvent): void;
}

interface LiveThinkingParts {
  readonly clock: Clock;
  readonly redactor: Redactor;
  readonly runs: RunTracks;
  /** Returns the clients that may see the session. */
  watching(sessionKey: string): readonly ThinkingListener[];
}

class Thought extends GrowingText<ThinkingListener> {
  /** Time of the first piece, by the monotonic clock. */
  startedAt = 0;
  /** Time from the first piece to the last one. */
  ms = 0;
}

export class LiveThinking {
  readonly #parts: LiveThinkingParts;
  readonly #thoughts = new Map<string, Thought>();

  constructor(parts: LiveThinkingParts) {
    this.#parts = parts;
  }

  hear(event: LiveTextEvent): void {
    const { runs, redactor } = this.#parts;
    if (runs.isQuiet(event.runId)) return;
    const thought = this.#thoughtOf(event);
    if (!thought.add(thought.unknownOf(event), redactor)) return;
    thought.ms = Math.round(this.#parts.clock.monotonic() - thought.startedAt);
    this.#tell(thought);
  }

  /** See `GrowingText.unknownOf`. */
  unknownOf(event: LiveTextEvent): LiveTextEvent {
    const known = this.#thoughts.get(event.runId);
    return known?.part === event.part ? known.unknownOf(event) : event;
  }

  /** Drops the thinking of a run, because its message is stored or the run has ended. */
  end(runId: string): void {
    this.#thoughts.delete(runId);
  }

  /** Sends a new client the current thoughts. */
  greet(listener: ThinkingListener, admits: (sessionKey: string) => boolean): void {
    if (!listener.thinkingDeltas) return;
    for (const thought of this.#thoughts.values()) if (admits(thought.sessionKey)) this.#tell(thought);
  }

  forget(listener: ThinkingListener): void {
    for (const thought of this.#thoughts.values()) thought.inStep.delete(listener);
  }

  #thoughtOf(event: LiveTextEvent): Thought {
    const known = this.#thoughts.get(event.runId);
    if (known?.part === event.part) return known;
    const thought = new Thought(event, this.#parts.redactor);
    thought.startedAt = this.#parts.clock.monotonic();
    this.#thoughts.set(event.runId, thought);
    return thought;
  }

  #tell(thought: Thought): void {
    const listeners = this.#parts.watching(thought.sessionKey).filter((one) => one.thinkingDeltas);
    if (listeners.length === 0 && thought.unreadChars <= UNREAD_CHARS_MAX) return;
    const fresh = thought.read(false);
    const encoded: { delta?: EncodedEvent; whole?: EncodedEvent } = {};
    for (const listener of listeners) {
      const form = thought.formFor(listener, fresh);
      if (form === undefined) continue;
      encoded[form] ??= this.#event(thought, form === "delta" ? fresh : thought.shown.text);
      listener.event(encoded[form]);
    }
  }

  /**
   * Returns the event that carries the newest part of a thought. This part may be the whole thought.
   */
  #event(thought: Thought, delta: string): EncodedEvent {
    const { runId, sessionKey, ms } = thought;
    const { clock, runs } = this.#parts;
    const offset = thought.shown.length - delta.length;
    const about = { runId, sessionKey, seq: runs.next(runId), ts: clock.now() };
    const payload: AgentEvent = {
      ...about,
      stream: "thinking_delta",
      data: { offset, delta, ms },
    };
    const [, , mark] = textMarks(runId);
    let whole: EncodedEvent | undefined;
    // Returns the whole thought, for a slow reader that has missed deltas.
    const latest = (): EncodedEvent => {
      whole ??= this.#event(thought, thought.shown.text);
      return whole;
    };
    return encodeEvent("agent", payload, { replaces: mark, latest });
  }
}
