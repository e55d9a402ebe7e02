// Sends hints, which are live events and wake-ups, between gateway processes, through the database that they
// share. Hints only save time: a process that misses one finds the changed row in its next sweep. They are
// sent in batches, outside every write transaction, and arrive in order. A newer state replaces an older one
// that was not sent yet, and pieces of one text are joined. A large hint is stored in a row, and only the
// number of the row is sent.

import { isLiveText, type LiveEvent } from "../../core/shapes/event.ts";
import { joinedDeltas } from "../../core/text/text-delta.ts";
import { keepPayload, readPayload } from "../../store/queries/live-payloads.ts";
import type { HeldLane } from "../../store/queries/runs/claims.ts";
import { type SharedStore, type Store, TRANSPORT_MESSAGE_MAX_BYTES } from "../../store/sql.ts";
import { pause } from "../../world/pause.ts";
import type { World } from "../../world.ts";

/** A hint from one process to all other processes. */
export type Hint =
  | { readonly kind: "event"; readonly event: LiveEvent }
  /** A run is ready, which any process may start. */
  | { readonly kind: "ready" }
  /** This run has its slot again, and continues in the process that holds it. */
  | { readonly kind: "resumed"; readonly held: HeldLane }
  /** A message to one process, which may be lost. Only sender and receiver know the format of the body. */
  | { readonly kind: "letter"; readonly to: string; readonly body: unknown }
  /** The sender hears live text for a while. With `again`, it requests all texts from the beginning. */
  | { readonly kind: "follow"; readonly address: string; readonly again: boolean }
  /** This process has sent the beginnings of its texts. */
  | { readonly kind: "followed"; readonly owner: string; readonly address: string }
  /** The sender had to drop hints. */
  | { readonly kind: "gap" };

/** The form in which a hint is sent: the hint itself, or the number of the row that contains it. */
type Item = Hint | { readonly kind: "kept"; readonly id: number };

/**
 * Maximum number of waiting hints while the database is unreachable. Above this number, the oldest hints are
 * dropped: other processes find the changes in the rows.
 */
const QUEUE_MAX = 2_000;
const RETRY_MS = 250;
/** Live text is sent to a process for this long after it has asked for it. */
const FOLLOW_MS = 3_000;
/**
 * Minimum interval between two batches. Hints that come in between are collected, so even a busy process
 * sends no more often.
 */
const BATCH_MS = 10;

/** Other processes need no hint for transcript entries and deliveries: they read the rows. */
function isForOthers(hint: Hint): boolean {
  if (hint.kind === "event" && hint.event.kind === "delivery") return false;
  if (hint.kind !== "event" || hint.event.kind !== "message") return true;
  const { message } = hint.event;
  return message.role === "assistant" && message.stopReason === "injected";
}

/** Returns the key of a hint. A waiting hint is replaced by a newer one with the same key. */
function markOf(hint: Hint): string | undefined {
  if (hint.kind === "letter") return undefined;
  if (hint.kind === "gap" || hint.kind === "ready") return hint.kind;
  if (hint.kind === "resumed") return `resumed ${hint.held.runId}`;
  if (hint.kind === "follow") return `follow ${hint.again}`;
  if (hint.kind === "followed") return `followed ${hint.address}`;
  const { event } = hint;
  if (isLiveText(event)) return `${event.kind} ${event.runId} ${event.part}`;
  if (event.kind === "outbox") return `outbox ${event.deliveryId}`;
  return event.kind === "session" && event.change === "state" ? `state ${event.sessionKey}` : undefined;
}

/** Merges a hint with a waiting hint of the same key. */
function mergedHint(before: Hint | undefined, hint: Hint): Hint {
  if (before?.kind !== "event" || !isLiveText(before.event)) return hint;
  if (hint.kind !== "event" || !isLiveText(hint.event)) return hint;
  const delta = joinedDeltas(before.event, hint.event);
  return delta === undefined ? hint : { kind: "event", event: { ...hint.event, ...delta } };
}

export interface HintTransportParts {
  readonly store: Store;
  readonly shared: SharedStore;
  readonly world: World;
}

export class HintTransport {
  readonly #parts: HintTransportParts;
  /** Pending hints by key, in the order of sending. A newer hint replaces an older one with the same key. */
  readonly #queue = new Map<string, Hint>();
  #count = 0;
  #sending: Promise<void> | undefined;
  #hearing: Promise<void> = Promise.resolve();
  #stopListening: (() => Promise<void>) | undefined;
  readonly #stopped = new AbortController();
  /** Monotonic time at which the last batch was sent. */
  #sentAt = 0;
  /** The addresses that hear live text, and until when by the monotonic clock. */
  readonly #followers = new Map<string, number>();

  constructor(parts: HintTransportParts) {
    this.#parts = parts;
  }

  async start(onHint: (hint: Hint) => void, onGap: () => void): Promise<void> {
    this.#stopListening = await this.#parts.shared.listen((text) => {
      // Hints are handled one after the other: a hint that is still being read from its row must not be
      // overtaken by a later one.
      this.#hearing = this.#hearing.then(() => this.#hear(text, onHint, onGap));
    }, onGap);
  }

  /** Sends the waiting hints once, and stops. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#stopListening?.();
    await this.#sending;
    await this.#hearing;
  }

  /** Sends live text to this address for a while. Returns false if it was sent already. */
  addFollower(address: string): boolean {
    const now = this.#parts.world.clock.monotonic();
    for (const [one, untilMs] of this.#followers) if (untilMs < now) this.#followers.delete(one);
    const { size } = this.#followers;
    return this.#followers.set(address, now + FOLLOW_MS).size > size;
  }

  /** Returns where a hint is sent. Undefined: to all other processes. */
  #addressesFor(hint: Hint): readonly (string | undefined)[] {
    if (hint.kind === "followed") return [hint.address];
    if (hint.kind !== "event" || !isLiveText(hint.event)) return [undefined];
    const now = this.#parts.world.clock.monotonic();
    return [...this.#followers].flatMap(([address, untilMs]) => (untilMs < now ? [] : [address]));
  }

  /** Sends a hint soon. Never throws and never waits. */
  send(hint: Hint): void {
    if (!isForOthers(hint) || this.#addressesFor(hint).length === 0) return;
    const mark = markOf(hint) ?? `${this.#count++}`;
    const merged = mergedHint(this.#queue.get(mark), hint);
    this.#queue.delete(mark);
    this.#queue.set(mark, merged);
    const [oldest] = this.#queue.keys();
    if (this.#queue.size > QUEUE_MAX && oldest !== undefined) {
      this.#queue.delete(oldest);
      this.#queue.set("gap", { kind: "gap" });
    }
    this.#sending ??= this.#work().finally(() => {
      this.#sending = undefined;
    });
  }

  async #work(): Promise<void> {
    const { world } = this.#parts;
    // Hints of the same turn of the event loop are sent together.
    await Promise.resolve();
    while (this.#queue.size > 0) {
      const waitMs = this.#sentAt + BATCH_MS - world.clock.monotonic();
      if (waitMs > 0) await pause(world.clock, waitMs, this.#stopped.signal);
      this.#sentAt = world.clock.monotonic();
      const hints = [...this.#queue.values()];
      this.#queue.clear();
      try {
        await this.#sendAll(hints);
      } catch (error) {
        world.log.debug({ err: error, count: hints.length }, "hints could not be sent to other processes");
        this.#queue.set("gap", { kind: "gap" });
        if (this.#stopped.signal.aborted) return;
        await pause(world.clock, RETRY_MS, this.#stopped.signal);
      }
    }
  }

  /** Sends hints in their order. Those that follow each other to the same addresses share messages. */
  async #sendAll(hints: readonly Hint[]): Promise<void> {
    let texts: string[] = [];
    let addresses: readonly (string | undefined)[] = [];
    const send = async (): Promise<void> => {
      const messages = texts.map((text) => `[${text}]`);
      for (const one of addresses) await this.#parts.shared.notify(messages, one);
      texts = [];
    };
    for (const hint of hints) {
      const to = this.#addressesFor(hint);
      if (to.length === 0) continue;
      if (to.join() !== addresses.join()) await send();
      addresses = to;
      const item = await this.#encode(hint);
      const joined = texts.length === 0 ? item : `${texts.at(-1)},${item}`;
      if (Buffer.byteLength(joined) + 2 > TRANSPORT_MESSAGE_MAX_BYTES) texts.push(item);
      else texts.splice(-1, 1, joined);
    }
    if (texts.length > 0) await send();
  }

  async #encode(hint: Hint): Promise<string> {
    const text = JSON.stringify(hint);
    if (Buffer.byteLength(text) + 3 <= TRANSPORT_MESSAGE_MAX_BYTES) return text;
    const { store, world } = this.#parts;
    const id = await store.transaction((tx) => keepPayload(tx, text, world.clock.now()));
    return JSON.stringify({ kind: "kept", id } satisfies Item);
  }

  /** Handles the hints of a message. Never rejects, because the next message waits for it. */
  async #hear(text: string, onHint: (hint: Hint) => void, onGap: () => void): Promise<void> {
    const { store, world } = this.#parts;
    for (const item of this.#itemsOf(text)) {
      try {
        if (item.kind !== "kept") onHint(item);
        else {
          const body = await readPayload(store.db, item.id);
          // The row may have been deleted.
          if (body === undefined) onGap();
          else onHint(JSON.parse(body) as Hint);
        }
      } catch (error) {
        world.log.warn({ err: error }, "a hint of another process could not be handled");
        onGap();
      }
    }
  }

  #itemsOf(text: string): readonly Item[] {
    try {
      return JSON.parse(text) as Item[];
    } catch (error) {
      this.#parts.world.log.warn({ err: error }, "a hint of another process could not be read");
      return [];
    }
  }
}
