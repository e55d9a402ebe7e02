// Owns what leaves through one socket: numbering of events, coalescing for a slow reader, the limit on unsent
// bytes.
// O1: `seq` rises by one with each event that is sent, so a client sees a gap only where the connection
//     broke.
// O2: nothing here waits: a slow reader costs its own socket and nobody else's.
// O3: of the events that replace each other only the newest is kept while the reader is behind.
// O4: the events of one run leave in their order, those that were held back too.
// O5: what is said in one step leaves in one piece: each write by itself costs a call of the system.
// O6: a long event is made into bytes once, however many are told of it.

import type { WebSocket } from "ws";
import { CLOSE, type EventName, type StateVersion } from "./protocol.ts";

/** What an event is to others that may be held back. */
export interface EventMarks {
  /** Events with the same mark replace each other: only the newest matters. */
  readonly replaces?: string;
  /** Of an event that says only what is new: the one that says it all, for a reader who has missed some. */
  readonly latest?: () => EncodedEvent;
  /** Marks of events that this one makes out of date: they must not come after it. */
  readonly settles?: readonly string[];
  /** Marks of events that have to leave before this one. */
  readonly follows?: readonly string[];
}

/** An event that is encoded once for all connections; each adds its own `seq`. */
export interface EncodedEvent extends EventMarks {
  /** The frame as JSON, without its closing brace. */
  readonly head: string;
  /** The same as bytes, of an event that is long. */
  readonly bytes?: () => Buffer;
}

/** Frames above this leave by themselves. */
const SMALL_CHARS = 16 * 1024;
/** So much of one step waits for the rest of it, at most: less than any bound of what a reader may leave. */
const HOLDING_BYTES = 16 * 1024;

/** Unsent bytes from which on replaceable events are held back. */
const BEHIND_BYTES = 256 * 1024;

export interface Outlet {
  /** A frame without `seq`: responses, and the challenge. */
  frame(text: string): void;
  event(event: EncodedEvent): void;
}

export interface OutletLimits {
  /** Unsent bytes above which the reader is given up. */
  readonly maxBufferedBytes: number;
  /** Ends the connection, and what it holds in memory. */
  close(code: number, reason: string): void;
  /** Lets what is sent from now on wait, until the returned function is called. Absent: nothing waits. */
  hold?: (() => () => void) | undefined;
}

export function encodeEvent(
  event: EventName,
  payload: unknown,
  more: EventMarks & { stateVersion?: StateVersion } = {},
): EncodedEvent {
  const { stateVersion, ...marks } = more;
  const version = stateVersion === undefined ? {} : { stateVersion };
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
    // Behind everything that follows from what is done now.
    process.nextTick(sendHolding);
  };
  /** Whether so much can be written now. */
  const mayWrite = (chars: number): boolean => {
    if (socket.readyState !== socket.OPEN) return false;
    // What waits here is not what the reader is slow to take.
    if (chars >= SMALL_CHARS || socket.bufferedAmount >= HOLDING_BYTES) sendHolding();
    // Judged before the write, so that one large answer to an idle reader is never its end.
    if (socket.bufferedAmount > limits.maxBufferedBytes) {
      held.clear();
      limits.close(CLOSE.tryAgain, "too slow: reconnect and read the history");
      return false;
    }
    if (chars < SMALL_CHARS) holdForStep();
    return true;
  };
  const write = (text: string): void => {
    if (mayWrite(text.length)) socket.send(text, release);
  };
  const number = ({ head, bytes }: EncodedEvent): void => {
    const end = `,"seq":${++seq}}`;
    if (bytes === undefined) write(`${head}${end}`);
    else if (mayWrite(head.length)) {
      // One message in two fragments: the first is the same for all.
      socket.send(bytes(), { binary: false, fin: false });
      socket.send(end, release);
    }
  };
  const isBehind = (): boolean => socket.bufferedAmount >= BEHIND_BYTES;
  const sendHeld = (marks: Iterable<string>): void => {
    for (const mark of [...marks]) {
      const event = held.get(mark);
      if (event === undefined) continue;
      held.delete(mark);
      number(event.latest?.() ?? event);
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
