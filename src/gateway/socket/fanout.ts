// Sends each live event to the connections that may see it, encoded once.
// A connection gets events of the sessions that its token covers, and no others (I9); events of the outbox
// need the right to read it. A node gets no session's events.
// No send is awaited; the outlet handles a slow reader.

import { createGate } from "../../access/token.ts";
import type { ConnectParams } from "../../contract/frames.ts";
import { isLenient, TEXT_DELTAS, THINKING_DELTAS } from "../../contract/protocol.ts";
import { mayAnswerPermissions } from "../../core/rules/scopes.ts";
import { isLiveText, type LiveEvent } from "../../core/shapes/event.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { Hide, Redactor } from "../../core/text/redact/redact.ts";
import type { Bus } from "../../engine/bus.ts";
import type { Clock, Log } from "../../world.ts";
import { AttentionHints } from "../attention/hints.ts";
import type { Caller } from "../auth.ts";
import { isLong, type OutEvent, piecesOf, Translator } from "./events.ts";
import { InOrder } from "./in-order.ts";
import { LiveTexts, type TextListener } from "./live-texts.ts";
import { LiveThinking, type ThinkingListener } from "./live-thinking.ts";
import { type EncodedEvent, encodeEvent } from "./outlet.ts";
import { RunTracks } from "./run-tracks.ts";

/** A connection as the fanout sees it. */
export interface Listener {
  readonly caller: Caller;
  readonly params?: Partial<Pick<ConnectParams, "caps" | "maxProtocol">>;
  event(event: EncodedEvent): void;
}

type Admits = (sessionKey: string) => boolean;

type Access = "events" | "deliveries" | "messages" | "approvals";

interface Subscriber extends TextListener, ThinkingListener, Readonly<Record<Access, Admits>> {
  /** False: its token covers only some sessions. */
  readonly everySession: boolean;
}

/** Maximum number of sessions whose connections are remembered; a full memory is cleared. */
const SESSIONS_MAX = 1_000;

/**
 * All connections. It remembers which of them get a session's events until a connection comes or goes: with
 * many connections, asking each one takes longer than sending a piece of text.
 */
class Audience {
  readonly #all = new Map<Listener, Subscriber>();
  readonly #known: Readonly<Record<Access, Map<string, readonly Subscriber[]>>> = {
    events: new Map(),
    deliveries: new Map(),
    messages: new Map(),
    approvals: new Map(),
  };

  add(listener: Listener, subscriber: Subscriber): void {
    this.#all.set(listener, subscriber);
    this.#forget();
  }

  remove(listener: Listener): void {
    this.#all.delete(listener);
    this.#forget();
  }

  clear(): void {
    this.#all.clear();
    this.#forget();
  }

  listeners(): Iterable<Listener> {
    return this.#all.keys();
  }

  /** Returns the connections with this right to a session. */
  of(access: Access, sessionKey: string): readonly Subscriber[] {
    const remembered = this.#known[access];
    const known = remembered.get(sessionKey);
    if (known !== undefined) return known;
    const found = [...this.#all.values()].filter((one) => one[access](sessionKey));
    if (remembered.size >= SESSIONS_MAX) remembered.clear();
    remembered.set(sessionKey, found);
    return found;
  }

  #forget(): void {
    for (const remembered of Object.values(this.#known)) remembered.clear();
  }
}

export interface Fanout {
  /** Adds a connection; the returned function removes it. */
  add(listener: Listener): () => void;
  /** Sends ticks, presence or shutdown to every connection whose caller `to` admits. */
  broadcast(event: EncodedEvent, to?: (caller: Caller) => boolean): void;
  close(): void;
}

export interface FanoutParts {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly redactor: Redactor;
  readonly settings: Settings;
  /** True if other gateways share the store, and publish events of the same runs. */
  readonly shared: boolean;
}

/** Returns the function that sends an event to the connections that may see it. */
function tellerOf(audience: Audience) {
  return (out: OutEvent): void => {
    const { event, sessionKey, payload, other, limited, access = "events", marks, unless } = out;
    let whole: EncodedEvent | undefined;
    let without: EncodedEvent | undefined;
    for (const subscriber of audience.of(access, sessionKey)) {
      const admits = subscriber[access];
      if (unless !== undefined && admits(unless)) continue;
      if (limited !== undefined && !subscriber.everySession)
        subscriber.event(encodeEvent(event, limited, marks));
      else if (other === undefined || admits(other.sessionKey)) {
        whole ??= encodeEvent(event, payload, marks);
        subscriber.event(whole);
      } else {
        without ??= encodeEvent(event, other.without, marks);
        subscriber.event(without);
      }
    }
  };
}

export function createFanout(parts: FanoutParts): Fanout {
  const { bus, clock, log, redactor, settings, shared } = parts;
  const audience = new Audience();
  const runs = new RunTracks(() => clock.now(), shared);
  const watching = (sessionKey: string) => audience.of("events", sessionKey);
  const texts = new LiveTexts({ clock, redactor, runs, watching });
  const thinking = new LiveThinking({ clock, redactor, runs, watching });
  const hints = new AttentionHints(clock);
  const wantsMessages = (sessionKey: string): boolean => audience.of("messages", sessionKey).length > 0;
  const translator = new Translator({ redactor, runs, texts, thinking, wantsMessages });

  const tell = tellerOf(audience);
  const handle = (event: LiveEvent, hide?: Hide): void => {
    if (event.kind === "text") texts.hear(event);
    else if (event.kind === "thinking") thinking.hear(event);
    else {
      for (const out of translator.translate(event, hide)) tell(out);
      hints.note(event, (access, sessionKey) => audience.of(access, sessionKey));
    }
  };
  const order = new InOrder({
    log,
    pace: () => redactor.pace(),
    isLong,
    handle,
    async inSteps(event, pace) {
      if (!isLiveText(event)) return handle(event, await translator.readAhead(event, pace));
      const live = event.kind === "text" ? texts : thinking;
      for (const piece of piecesOf(live.unknownOf(event))) {
        handle(piece);
        await pace();
      }
    },
  });
  const unsubscribe = bus.subscribe((event) => order.hear(event));
  return {
    add(listener) {
      const gate = (access: "events" | "deliveries") => createGate(settings, listener.caller, access);
      const events = gate("events");
      const told: Subscriber = {
        events,
        messages: isLenient(listener.params?.maxProtocol) ? events : () => false,
        approvals: (key) => mayAnswerPermissions(listener.caller) && told.messages(key),
        deliveries: gate("deliveries"),
        everySession: listener.caller.patterns === undefined,
        textDeltas: listener.params?.caps?.includes(TEXT_DELTAS) === true,
        thinkingDeltas: listener.params?.caps?.includes(THINKING_DELTAS) === true,
        event: (event) => listener.event(event),
      };
      audience.add(listener, told);
      const hideText = listener.caller.nodeId === undefined ? bus.showText() : () => {};
      for (const live of [texts, thinking]) live.greet(told, told.events);
      return () => {
        audience.remove(listener);
        hideText();
        for (const live of [texts, thinking, hints]) live.forget(told);
      };
    },
    broadcast(event, to = () => true) {
      for (const listener of audience.listeners()) if (to(listener.caller)) listener.event(event);
    },
    close() {
      unsubscribe();
      order.close();
      texts.close();
      hints.close();
      audience.clear();
    },
  };
}
