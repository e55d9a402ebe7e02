// Owns who is told what: each live event goes through the gate for each connection, encoded once.
// F1: a connection gets events of the sessions that its token covers, and no others (I9); a node gets no session's events.
// F2: no send is waited for; what a slow reader does is its outlet's business.
// F3: text that is being written leaves at most once per interval and run; its end never waits.

import type { LiveEvent } from "../core/event.ts";
import type { Settings } from "../core/settings.ts";
import type { Bus } from "../engine/bus.ts";
import type { Clock, Timer } from "../world.ts";
import type { Caller } from "./auth.ts";
import { createTranslator, type OutEvent } from "./events.ts";
import { createGate } from "./gate.ts";
import { type EncodedEvent, encodeEvent } from "./outlet.ts";

/** A connection as the fanout sees it. */
export interface Listener {
  readonly caller: Caller;
  event(event: EncodedEvent): void;
}

export interface Fanout {
  /** Begins to tell a connection; the returned function ends it. */
  add(listener: Listener): () => void;
  /** Tells every connection whose caller `to` admits: ticks, presence, shutdown. */
  broadcast(event: EncodedEvent, to?: (caller: Caller) => boolean): void;
  close(): void;
}

export interface FanoutParts {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly settings: Settings;
}

/** Least time between two texts of one run: a person reads no faster, and each text holds the whole so far. */
const TEXT_EVERY_MS = 50;

/** Lets the text of each run through at most once per interval; the newest is never lost. */
function createTextPace(clock: Clock, emit: (event: LiveEvent) => void) {
  interface Pace {
    sentAt: number;
    waiting?: LiveEvent | undefined;
    timer?: Timer | undefined;
  }
  const runs = new Map<string, Pace>();
  const send = (pace: Pace): void => {
    pace.timer?.cancel();
    pace.timer = undefined;
    const event = pace.waiting;
    pace.waiting = undefined;
    pace.sentAt = clock.now();
    if (event !== undefined) emit(event);
  };
  return {
    text(runId: string, event: LiveEvent): void {
      const pace = runs.get(runId) ?? { sentAt: Number.NEGATIVE_INFINITY };
      runs.set(runId, pace);
      pace.waiting = event;
      const dueAt = pace.sentAt + TEXT_EVERY_MS;
      if (dueAt <= clock.now()) send(pace);
      else pace.timer ??= clock.at(dueAt, () => send(pace));
    },
    /** Sends what waits, before something that must come after it. */
    flush(runId: string): void {
      const pace = runs.get(runId);
      if (pace?.waiting !== undefined) send(pace);
    },
    /** Drops what waits: the end of the run holds all of it. */
    end(runId: string): void {
      runs.get(runId)?.timer?.cancel();
      runs.delete(runId);
    },
    close(): void {
      for (const pace of runs.values()) pace.timer?.cancel();
      runs.clear();
    },
  };
}

export function createFanout(parts: FanoutParts): Fanout {
  const { bus, clock, settings } = parts;
  const listeners = new Map<Listener, (sessionKey: string) => boolean>();
  const translate = createTranslator(() => clock.now());

  const tell = (out: OutEvent): void => {
    const marks = {
      ...(out.replaces === undefined ? {} : { replaces: out.replaces }),
      ...(out.settles === undefined ? {} : { settles: out.settles }),
    };
    let encoded: EncodedEvent | undefined;
    for (const [listener, admits] of listeners) {
      if (!admits(out.sessionKey)) continue;
      encoded ??= encodeEvent(out.event, out.payload, marks);
      listener.event(encoded);
    }
  };
  const emit = (event: LiveEvent): void => {
    for (const out of translate(event)) tell(out);
  };
  const pace = createTextPace(clock, emit);

  const unsubscribe = bus.subscribe((event) => {
    if (event.kind === "text" && listeners.size === 0) return;
    if (event.kind === "text") return pace.text(event.runId, event);
    if (event.kind === "run_ended") pace.end(event.runId);
    else if (event.kind === "tool") pace.flush(event.runId);
    emit(event);
  });
  return {
    add(listener) {
      listeners.set(listener, createGate(settings, listener.caller, "events"));
      return () => listeners.delete(listener);
    },
    broadcast(event, to = () => true) {
      for (const listener of listeners.keys()) if (to(listener.caller)) listener.event(event);
    },
    close() {
      unsubscribe();
      pace.close();
      listeners.clear();
    },
  };
}
