// Sends to one socket: numbers events, coalesces them for a slow reader, and limits unsent bytes.
// `seq` rises by one with each sent event, so a client sees a gap only if the connection broke.
// No send is awaited: a slow reader affects only its own socket.
// Of events that replace each other only the newest is kept while the reader is behind.
// The events of one run are sent in order, including those that were held back.
// O5: the output of one event-loop turn is sent in one piece, because each write costs a system call.
// An event larger than a client accepts is left out; the transcript has its text.
// O6: a long event is encoded to bytes once for all readers.

import type { WebSocket } from "ws";
import type { EventName, EventPayloads } from "../../contract/events.ts";
import type { StateVersion } from "../../contract/frames.ts";
import { CLOSE, MAX_FRAME_BYTES } from "../../contract/protocol.ts";
import { optional } from "../../core/optional.ts";

/** How an event relates to other events that may be held back. */
export interface EventMarks {
  /** Events with the same mark replace each other: only the newest matters. */
  readonly replaces?: string;
  /**
   * Set if the event has only the new part of a text. Returns the event with the whole text, for a reader
   * that missed parts.
   */
  readonly latest?: () => EncodedEvent;
  /** Marks of events that this one makes obsolete: they must not be sent after it. */
  readonly settles?: readonly string[];
  /** Marks of events that must be sent before this one. */
  readonly follows?: readonly string[];
}

/** An event that is encoded once for all connections. Each connection adds its own `seq`. */
export interface EncodedEvent extends EventMarks {
  /** The frame as JSON, without its closing brace. */
  readonly head: string;
  /** The head as bytes, if the event is long. */
  readonly bytes?: () => Buffer;
}

/** Maximum characters of a frame that is sent together with others. */
const SMALL_CHARS = 16 * 1024;
/** Frames of one event-loop turn are joined up to this size. Less than each limit on unsent bytes. */
const HOLDING_BYTES = 16 * 1024;

/** Number of unsent bytes above which replaceable events are held back. */
const BEHIND_BYTES = 256 * 1024;

/** Characters that the number of an event may add to its frame. */
const NUMBER_CHARS = 32;

/** Returns whether clients accept a frame of this text. */
export function isSendable(text: string): boolean {
  const most = MAX_FRAME_BYTES - NUMBER_CHARS;
  // A character has at most three bytes, so most frames need no counting.
  return text.length * 3 <= most || Buffer.byteLength(text) <= most;
}

export interface Outlet {
  /** Sends a frame without `seq`: responses, and the challenge. */
  frame(text: string): void;
  event(event: EncodedEvent): void;
}

export interface OutletLimits {
  /** Unsent bytes above which a slow reader is disconnected. */
  readonly maxBufferedBytes: number;
  /** Ends the connection and frees its memory. */
  close(code: number, reason: string): void;
  /** Buffers writes until the returned function is called. If absent, nothing is buffered. */
  hold?: (() => () => void) | undefined;
}

export function encodeEvent<E extends EventName>(
  event: E,
  payload: EventPayloads[E],
  more: EventMarks & { stateVersion?: StateVersion } = {},
): EncodedEvent {
  const { stateVersion, ...marks } = more;
  const version = optional({ stateVersion });
  const head = JSON.stringify({ type: "event", event, payload, ...version }).slice(0, -1);
  if (head.length < SMALL_CHARS) return { head, ...marks };
  let bytes: Buffer | undefined;
  return {
    head,
    bytes: () => {
      bytes ??= Buffer.from(head);
      return bytes;
    },
    ...marks,
  };
}

export function createOutlet(socket: WebSocket, limits: OutletLimits): Outlet {
  let seq = 0;
  const held = new Map<string, EncodedEvent>();

  let letGo: (() => void) | undefined;
  const sendHolding = (): void => {
    const go = letGo;
    letGo = undefined;
    go?.();
  };
  const holdForStep = (): void => {
    if (letGo !== undefined || limits.hold === undefined) return;
    letGo = limits.hold();
    // Runs after all sends of this tick.
    process.nextTick(sendHolding);
  };
  /** Returns whether this many characters can be written now. */
  const mayWrite = (chars: number): boolean => {
    if (socket.readyState !== socket.OPEN) return false;
    // Write held bytes first: they count as buffered, but do not show that the reader is slow.
    if (chars >= SMALL_CHARS || socket.bufferedAmount >= HOLDING_BYTES) sendHolding();
    // Checked before the write, so that one large answer never disconnects an idle reader.
    if (socket.bufferedAmount > limits.maxBufferedBytes) {
      held.clear();
      limits.close(CLOSE.tryAgain, "the client reads too slowly; reconnect and read the history");
      return false;
    }
    if (chars < SMALL_CHARS) holdForStep();
    return true;
  };
  const write = (text: string): void => {
    if (mayWrite(text.length)) socket.send(text, release);
  };
  const number = ({ head, bytes }: EncodedEvent): void => {
    if (!isSendable(head)) return;
    const end = `,"seq":${++seq}}`;
    if (bytes === undefined) write(`${head}${end}`);
    else if (mayWrite(head.length)) {
      // Sends one message in two fragments. The first fragment is the same for all connections.
      socket.send(bytes(), { binary: false, fin: false });
      socket.send(end, release);
    }
  };
  const isBehind = (): boolean => socket.bufferedAmount >= BEHIND_BYTES;
  const sendHeld = (marks: Iterable<string>): void => {
    for (const mark of [...marks]) {
      const event = held.get(mark);
      if (event !== undefined && held.delete(mark)) number(event.latest?.() ?? event);
    }
  };
  const release = (): void => {
    if (held.size > 0 && !isBehind()) sendHeld(held.keys());
  };

  return {
    frame: write,
    event(event) {
      for (const mark of event.settles ?? []) held.delete(mark);
      const hasMissed = event.replaces !== undefined && held.delete(event.replaces);
      if (event.replaces !== undefined && isBehind()) {
        held.set(event.replaces, event);
        return;
      }
      release();
      sendHeld(event.follows ?? []);
      number((hasMissed ? event.latest?.() : undefined) ?? event);
    },
  };
}
