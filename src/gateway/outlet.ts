// Owns what leaves through one socket: numbering of events, coalescing for a slow reader, the limit on unsent
// bytes.
// O1: `seq` rises by one with each event that is sent, so a client sees a gap only where the connection
//     broke.
// O2: nothing here waits: a slow reader costs its own socket and nobody else's.
// O3: of the events that replace each other only the newest is kept while the reader is behind.

import type { WebSocket } from "ws";
import { CLOSE, type EventName, type StateVersion } from "./protocol.ts";

/** An event that is encoded once for all connections; each adds its own `seq`. */
export interface EncodedEvent {
  /** The frame as JSON, without its closing brace. */
  readonly head: string;
  /** Events with the same mark replace each other: only the newest matters. */
  readonly replaces?: string;
  /** Marks of events that this one makes out of date: they must not come after it. */
  readonly settles?: readonly string[];
}

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
}

export function encodeEvent(
  event: EventName,
  payload: unknown,
  more: Omit<EncodedEvent, "head"> & { stateVersion?: StateVersion } = {},
): EncodedEvent {
  const { stateVersion, ...marks } = more;
  const version = stateVersion === undefined ? {} : { stateVersion };
  return { head: JSON.stringify({ type: "event", event, payload, ...version }).slice(0, -1), ...marks };
}

export function createOutlet(socket: WebSocket, limits: OutletLimits): Outlet {
  let seq = 0;
  const held = new Map<string, EncodedEvent>();

  const write = (text: string): void => {
    if (socket.readyState !== socket.OPEN) return;
    // Judged before the write, so that one large answer to an idle reader is never its end.
    if (socket.bufferedAmount > limits.maxBufferedBytes) {
      held.clear();
      limits.close(CLOSE.tryAgain, "too slow: reconnect and read the history");
      return;
    }
    socket.send(text, release);
  };
  const number = (event: EncodedEvent): void => write(`${event.head},"seq":${++seq}}`);
  const release = (): void => {
    if (held.size === 0 || socket.bufferedAmount >= BEHIND_BYTES) return;
    const waiting = [...held.values()];
    held.clear();
    for (const event of waiting) number(event);
  };

  return {
    frame: write,
    event(event) {
      for (const mark of event.settles ?? []) held.delete(mark);
      if (event.replaces !== undefined) held.delete(event.replaces);
      if (event.replaces === undefined || socket.bufferedAmount < BEHIND_BYTES) number(event);
      else held.set(event.replaces, event);
    },
  };
}
