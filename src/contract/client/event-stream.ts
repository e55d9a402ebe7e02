// Owns the event stream of one reader: the filter, the buffer, and the report of missed events.
// ES1: the buffer is limited, in events and in characters. A `missed` event takes the position of the dropped
//      events.
// ES2: if a later text of a run replaces a buffered one, the buffered text is dropped first and not reported
//      as missed.
// ES3: a pending read gets the next event, the end, or the error that ended the stream.

import type { AgentEvent, ChatEvent, EventName, EventPayloads } from "../events.ts";
import type { EventFrame } from "../frames.ts";
import type { GatewayError } from "./error.ts";
import type { GatewayEvent, Missed } from "./types.ts";

export const BUFFER_DEFAULT_EVENTS = 1_000;
/** Maximum number of characters in the buffered frames, for any number of frames. */
const BUFFER_MAX_CHARS = 16 * 1024 * 1024;
const MISSED_KEYS_MAX = 64;

interface Waiting {
  readonly event: GatewayEvent;
  readonly chars: number;
}

interface Turn {
  resolve(result: IteratorResult<GatewayEvent, undefined>): void;
  reject(error: GatewayError): void;
}

interface EventFilter {
  /** The session's canonical key. */
  readonly sessionKey: string | undefined;
  readonly runId: string | undefined;
  readonly names: readonly EventName[] | undefined;
}

type AboutSession = Partial<
  Pick<ChatEvent | AgentEvent, "sessionKey" | "runId"> & Pick<EventPayloads["sessions"], "key">
>;

function sessionOf({ payload }: GatewayEvent): string | undefined {
  const about = payload as AboutSession;
  return about.sessionKey ?? about.key;
}

export class EventStream implements AsyncIterableIterator<GatewayEvent> {
  readonly #filter: EventFilter;
  readonly #bufferMax: number;
  readonly #onEnd: () => void;
  readonly #turns: Turn[] = [];
  #queue: Waiting[] = [];
  #chars = 0;
  #missed: { events: Map<EventName, number>; keys: Set<string> } | undefined;
  #end: { readonly error: GatewayError | undefined } | undefined;

  constructor(filter: EventFilter, bufferMax: number, onEnd: () => void) {
    this.#filter = filter;
    this.#bufferMax = Math.max(1, bufferMax);
    this.#onEnd = onEnd;
  }

  /** Buffers an event of the connection if it matches the filter. */
  offer(frame: EventFrame, chars: number): void {
    const event = { event: frame.event, payload: frame.payload } as GatewayEvent;
    if (this.#wants(frame.event as EventName, event)) this.#put({ event, chars });
  }

  /** Called after a reconnect. Events that were sent while the connection was broken are lost. */
  reconnected(): void {
    const payload: Missed = { reason: "reconnect", events: {}, sessionKeys: [] };
    this.#put({ event: { event: "missed", payload }, chars: 0 });
  }

  /** Ends the stream. Events in the buffer can still be read. */
  end(error?: GatewayError): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    this.#onEnd();
    for (const turn of this.#turns.splice(0)) this.#finish(turn);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<GatewayEvent, undefined>> {
    return new Promise((resolve, reject) => {
      const value = this.#take();
      if (value !== undefined) resolve({ done: false, value });
      else if (this.#end !== undefined) this.#finish({ resolve, reject });
      else this.#turns.push({ resolve, reject });
    });
  }

  async return(): Promise<IteratorResult<GatewayEvent, undefined>> {
    this.#queue = [];
    this.#missed = undefined;
    this.end();
    return { done: true, value: undefined };
  }

  #wants(name: EventName, event: GatewayEvent): boolean {
    if (this.#end !== undefined) return false;
    const { sessionKey, runId, names } = this.#filter;
    if (names?.includes(name) === false) return false;
    if (runId !== undefined && (event.payload as AboutSession).runId !== runId) return false;
    return sessionKey === undefined || sessionOf(event) === sessionKey;
  }

  #put(waiting: Waiting): void {
    if (this.#end !== undefined) return;
    const turn = this.#turns.shift();
    if (turn !== undefined) {
      turn.resolve({ done: false, value: waiting.event });
      return;
    }
    this.#queue.push(waiting);
    this.#chars += waiting.chars;
    if (this.#isOver(1)) this.#makeRoom();
  }

  /** Returns whether the events or characters in the buffer exceed `part` of its limits. */
  #isOver(part: number, count = this.#queue.length): boolean {
    return count > this.#bufferMax * part || this.#chars > BUFFER_MAX_CHARS * part;
  }

  /** Drops many events at once, so that a reader that never reads costs little time. */
  #makeRoom(): void {
    // A text that a later text replaces is left out (ES2).
    const later = new Set<string>();
    this.#queue = this.#queue
      .toReversed()
      .filter(({ event }) => {
        if (event.event !== "chat") return true;
        const { runId, state } = event.payload;
        const isReplaced = later.has(runId) && state === "delta";
        later.add(runId);
        return !isReplaced;
      })
      .reverse();
    this.#chars = this.#queue.reduce((sum, { chars }) => sum + chars, 0);
    if (!this.#isOver(0.75)) return;
    const kept = this.#queue;
    let from = 0;
    // Keep the newest event, regardless of its size.
    while (from < kept.length - 1 && this.#isOver(0.5, kept.length - from)) this.#drop(kept[from++]);
    this.#queue = kept.slice(from);
  }

  #drop(waiting: Waiting | undefined): void {
    if (waiting === undefined) return;
    const { event, chars } = waiting;
    this.#chars -= chars;
    this.#missed ??= { events: new Map(), keys: new Set() };
    const { events, keys } = this.#missed;
    if (event.event !== "missed") events.set(event.event, (events.get(event.event) ?? 0) + 1);
    const key = sessionOf(event);
    if (key !== undefined && keys.size < MISSED_KEYS_MAX) keys.add(key);
  }

  #take(): GatewayEvent | undefined {
    if (this.#missed !== undefined) {
      const { events, keys } = this.#missed;
      this.#missed = undefined;
      const payload: Missed = {
        reason: "slow-reader",
        events: Object.fromEntries(events),
        sessionKeys: [...keys],
      };
      return { event: "missed", payload };
    }
    const waiting = this.#queue.shift();
    if (waiting === undefined) return undefined;
    this.#chars -= waiting.chars;
    return waiting.event;
  }

  #finish({ resolve, reject }: Turn): void {
    const error = this.#end?.error;
    if (error === undefined) resolve({ done: true, value: undefined });
    else reject(error);
  }
}
