// Sends the text of running runs: only the new part to clients with `text-deltas`; the whole text so far, at
// longer intervals, to all others.
// A text is redacted once, in pieces (I14): immediately while a client subscribes, otherwise whenever
// `UNREAD_CHARS_MAX` new characters have accumulated, so that no step takes long.
// A client gets a delta if it has all the text before it, or if a message begins; otherwise it gets the whole
// text.
// A whole text is sent at most every 150 ms, and less often the longer it is; before a run does something
// else, its complete text is sent.

import type { AgentEvent, ChatEvent } from "../../contract/events.ts";
import type { LiveTextEvent } from "../../core/shapes/event.ts";
import { LONG_CHARS, type Redactor } from "../../core/text/redact/redact.ts";
import type { TextDelta } from "../../core/text/text-delta.ts";
import type { Clock, Timer } from "../../world.ts";
import { GrowingText, UNREAD_CHARS_MAX } from "./growing-text.ts";
import { type EncodedEvent, encodeEvent } from "./outlet.ts";
import type { RunTracks } from "./run-tracks.ts";

/** Interval between two whole texts shorter than `WHOLE_TEXT_CHARS`. */
const WHOLE_TEXT_INTERVAL_MS = 150;
/** Length of a text from which the interval grows with the text. */
const WHOLE_TEXT_CHARS = 16 * 1024;

export interface TextListener {
  /** Whether the client requested deltas. */
  readonly textDeltas: boolean;
  event(event: EncodedEvent): void;
}

export interface LiveTextParts {
  readonly clock: Clock;
  readonly redactor: Redactor;
  readonly runs: RunTracks;
  /** Returns the clients that may see the session. */
  watching(sessionKey: string): readonly TextListener[];
}

type EndOfRun = Readonly<Record<"runId" | "sessionKey" | "text", string>>;

/** Returns the marks of a run's three live events: text as `agent` event, text as `chat` event, thinking. */
export function textMarks(runId: string): readonly [text: string, chat: string, thinking: string] {
  return [`text:${runId}`, `chat:${runId}`, `thinking:${runId}`];
}

class LiveText extends GrowingText<TextListener> {
  /** Time at which the whole text was last sent, by the monotonic clock. */
  toldAt = Number.NEGATIVE_INFINITY;
  /** The length of the redacted text when it was last sent as a whole. */
  toldLength = 0;
  timer: Timer | undefined;

  override add(delta: TextDelta, redactor: Redactor): boolean {
    if (delta.offset < this.raw.length) this.toldLength = 0;
    return super.add(delta, redactor);
  }
}

export class LiveTexts {
  readonly #parts: LiveTextParts;
  readonly #texts = new Map<string, LiveText>();

  constructor(parts: LiveTextParts) {
    this.#parts = parts;
  }

  hear(event: LiveTextEvent): void {
    const { runs, redactor, watching } = this.#parts;
    if (runs.isQuiet(event.runId)) return;
    const text = this.#textOf(event);
    if (!text.add(text.unknownOf(event), redactor)) return;
    const listeners = watching(text.sessionKey);
    if (listeners.length > 0) this.#tellNew(text, listeners, text.read(false));
    else if (text.unreadChars > UNREAD_CHARS_MAX) text.read(false);
  }

  /** See `GrowingText.unknownOf`. */
  unknownOf(event: LiveTextEvent): LiveTextEvent {
    const known = this.#texts.get(event.runId);
    return known?.part === event.part ? known.unknownOf(event) : event;
  }

  /** Sends the complete text so far, before the run continues with something else. */
  complete(runId: string): void {
    const text = this.#texts.get(runId);
    if (text === undefined) return;
    this.#texts.delete(runId);
    const listeners = this.#parts.watching(text.sessionKey);
    if (listeners.length > 0) {
      this.#tellNew(text, listeners, text.read(true));
      this.#tellWhole(text, listeners);
    }
    text.timer?.cancel();
  }

  /** Redacts the final text of a run in steps, so that `end` has little left to do. */
  *readAhead({ runId, sessionKey, text: whole }: EndOfRun): Generator<undefined> {
    if (this.#parts.watching(sessionKey).length === 0) return;
    const text = this.#ending(runId, sessionKey, whole);
    this.#texts.set(runId, text);
    while (text.raw.length < whole.length) {
      const offset = text.raw.length;
      text.add({ offset, text: whole.slice(offset, offset + LONG_CHARS) }, this.#parts.redactor);
      text.read(false);
      yield;
    }
  }

  /**
   * Ends the live text of a run. Returns its final text, redacted: parts that were redacted before are
   * reused. Returns undefined if the text is empty, or if nobody subscribes.
   */
  end({ runId, sessionKey, text: whole }: EndOfRun): string | undefined {
    const text = this.#ending(runId, sessionKey, whole);
    text.timer?.cancel();
    this.#texts.delete(runId);
    if (this.#parts.watching(sessionKey).length === 0 || whole === "") return undefined;
    const offset = text.raw.length;
    text.add({ offset, text: whole.slice(offset) }, this.#parts.redactor);
    text.read(true);
    return text.shown.text;
  }

  /**
   * Sends the current texts to a new client that gets deltas. Any other client gets them with the next
   * change.
   */
  greet(listener: TextListener, admits: (sessionKey: string) => boolean): void {
    if (!listener.textDeltas) return;
    for (const text of this.#texts.values()) {
      if (!admits(text.sessionKey)) continue;
      this.#tellNew(text, this.#parts.watching(text.sessionKey), text.read(false));
    }
  }

  forget(listener: TextListener): void {
    for (const text of this.#texts.values()) text.inStep.delete(listener);
  }

  close(): void {
    for (const { timer } of this.#texts.values()) timer?.cancel();
    this.#texts.clear();
  }

  /** Returns the live text of a run, or a new one if the final text does not continue it. */
  #ending(runId: string, sessionKey: string, whole: string): LiveText {
    const known = this.#texts.get(runId);
    if (known?.raw.begins(whole) === true) return known;
    known?.timer?.cancel();
    return new LiveText({ part: "", runId, sessionKey }, this.#parts.redactor);
  }

  #textOf(event: LiveTextEvent): LiveText {
    const known = this.#texts.get(event.runId);
    if (known?.part === event.part) return known;
    known?.timer?.cancel();
    const text = new LiveText(event, this.#parts.redactor);
    this.#texts.set(event.runId, text);
    return text;
  }

  #tellNew(text: LiveText, listeners: readonly TextListener[], fresh: string): void {
    let whole: EncodedEvent | undefined;
    let delta: EncodedEvent | undefined;
    for (const listener of listeners) {
      const form = listener.textDeltas ? text.formFor(listener, fresh) : undefined;
      if (form === "delta") {
        delta ??= this.#delta(text, fresh);
        listener.event(delta);
      } else if (form === "whole") {
        whole ??= this.#chat(text);
        listener.event(whole);
      }
    }
    this.#tellWholeSoon(text, listeners);
  }

  #tellWholeSoon(text: LiveText, listeners: readonly TextListener[]): void {
    if (text.timer !== undefined || text.shown.length === text.toldLength) return;
    if (listeners.every(({ textDeltas }) => textDeltas)) return;
    const { clock, watching } = this.#parts;
    const interval = WHOLE_TEXT_INTERVAL_MS * Math.max(1, text.shown.length / WHOLE_TEXT_CHARS);
    const waitMs = text.toldAt + interval - clock.monotonic();
    if (waitMs <= 0) {
      this.#tellWhole(text, listeners);
      return;
    }
    text.timer = clock.after(waitMs, () => {
      text.timer = undefined;
      this.#tellWhole(text, watching(text.sessionKey));
    });
  }

  #tellWhole(text: LiveText, listeners: readonly TextListener[]): void {
    if (text.shown.length === text.toldLength) return;
    text.toldLength = text.shown.length;
    text.toldAt = this.#parts.clock.monotonic();
    const others = listeners.filter(({ textDeltas }) => !textDeltas);
    if (others.length === 0) return;
    const encoded = [this.#assistant(text), this.#chat(text)];
    for (const listener of others) for (const event of encoded) listener.event(event);
  }

  #about({ runId, sessionKey }: LiveText) {
    return { runId, sessionKey, seq: this.#parts.runs.next(runId) };
  }

  #assistant(text: LiveText): EncodedEvent {
    const about = { ...this.#about(text), ts: this.#parts.clock.now() };
    const payload: AgentEvent = { ...about, stream: "assistant", data: { text: text.shown.text } };
    const [mark] = textMarks(text.runId);
    return encodeEvent("agent", payload, { replaces: mark });
  }

  #chat(text: LiveText): EncodedEvent {
    const content = [{ type: "text" as const, text: text.shown.text }];
    const message = { role: "assistant" as const, content, timestamp: this.#parts.clock.now() };
    const payload: ChatEvent = { ...this.#about(text), state: "delta", message };
    const [, mark] = textMarks(text.runId);
    return encodeEvent("chat", payload, { replaces: mark });
  }

  #delta(text: LiveText, delta: string): EncodedEvent {
    const offset = text.shown.length - delta.length;
    const payload: ChatEvent = { ...this.#about(text), state: "delta", offset, delta };
    const [, mark] = textMarks(text.runId);
    let whole: EncodedEvent | undefined;
    // Returns the whole text, for a slow reader that has missed deltas.
    const latest = (): EncodedEvent => {
      whole ??= this.#chat(text);
      return whole;
    };
    return encodeEvent("chat", payload, { replaces: mark, latest });
  }
}
