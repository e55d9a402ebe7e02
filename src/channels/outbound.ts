// Delivers the texts in the outbox: passes them to their channel and records the outcome. Each attempt is
// stored before it is made. If a crash or a lost answer leaves the outcome of an attempt open, this is
// settled later (I5).
// Deliveries of one route are sent in order, deliveries of different routes concurrently. An account that
// fails or never answers does not delay the others. Events for programs are sent in order per session, at the
// pace of the program (`hook-pace.ts`).
// A long text is sent in parts. Each part is acknowledged, so a part that has arrived is not sent again (I5).
// Retries continue for 24 h, after pauses that grow from 1 s to 5 min. Then the delivery is `failed`, and
// operators see it.
// OB1: a channel or account that is missing fails a delivery only if no settings have it. While it is opened
//      or replaced, or gateways that share the store still change to new settings, the delivery waits.

import { grownPause } from "../core/backoff.ts";
import { optional } from "../core/optional.ts";
import type { Route } from "../core/shapes/session.ts";
import { splitText } from "../core/text/text-split.ts";
import type { LeasedWorker } from "../engine/cluster/lease.ts";
import { logRetry } from "../engine/run/until-stored.ts";
import type { Commit, Unit } from "../engine/unit.ts";
import { publishOutbox } from "../flows/delivery/outbox.ts";
import { isInDoubt } from "../store/problems.ts";
import {
  type AttemptOutcome,
  beginAttempt,
  type Delivery,
  type DeliveryClass,
  dueDeliveries,
  endAttempt,
  recoverOpenAttempts,
} from "../store/queries/channels/deliveries.ts";
import { contentOfFile, getSentFile } from "../store/queries/channels/sent-files.ts";
import type { StoredKind } from "../store/queries/deadlines.ts";
import { settingsAgree } from "../store/queries/processes.ts";
import { type Db, kindOf } from "../store/sql.ts";
import { pause } from "../world/pause.ts";
import { type World, withFields } from "../world.ts";
import type { Channel, DeliveryOutcome, OutgoingMessage } from "./channel.ts";
import { HOOKS_AT_ONCE, HookPace } from "./hook-pace.ts";

const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 5 * 60_000;
/** Maximum number of texts that are delivered at the same time through one account. */
const TEXTS_AT_ONCE = 16;
/** Minimum age of a delivery that fails because no gateway has its account. A gateway may be restarting. */
const ABSENT_MS = 10 * 60_000;

const UNKNOWN = "The gateway stopped during an attempt, so it is not known whether the text arrived.";

/**
 * Publishes the outcome of an attempt as a change of the outbox, except for a delivered webhook event. If a
 * text was delivered or has finally failed, also publishes a `delivery` event.
 */
function tellOutcome(unit: Unit, delivery: Delivery, outcome: AttemptOutcome): void {
  if (outcome.kind !== "part" && (delivery.kind !== "hook" || outcome.kind !== "sent")) {
    publishOutbox(unit, delivery, outcome.kind === "retry" ? "pending" : outcome.kind);
  }
  const { id: deliveryId, sessionKey, runId, kind: what, route } = delivery;
  if (what === "hook" || (outcome.kind !== "sent" && outcome.kind !== "failed")) return;
  const why = outcome.kind === "failed" ? { code: outcome.code, error: outcome.error } : {};
  const { channel, to } = route;
  unit.publish({
    kind: "delivery",
    deliveryId,
    sessionKey,
    what,
    state: outcome.kind,
    channel,
    to,
    atMs: unit.now,
    ...why,
    ...optional({ runId }),
  });
}

type Outcome = Exclude<DeliveryOutcome, { kind: "absent" }>;
type Content = Pick<OutgoingMessage, "text" | "part" | "parts" | "file" | "choices" | "answers">;

interface OutboxParts {
  readonly db: Db;
  readonly commit: Commit;
  readonly channels: ReadonlyMap<string, Channel>;
  readonly world: World;
  readonly owner: string;
  /**
   * Set if other processes deliver from the same outbox: see `Lease.watch`. Then only attempts of
   * processes that have died are settled.
   */
  readonly watchLease?: () => () => boolean;
  readonly of: DeliveryClass;
  /** Looks for due deliveries: see `Deadlines`. */
  lookAtDates(): void;
  /** Returns whether the settings have the channel and the account of a route. Default: never. */
  isConfigured?(route: Route): boolean;
  /** Called in the transaction that settles a delivery. */
  onSettled?(unit: Unit, delivery: Delivery): Promise<void>;
}

/**
 * Returns the log fields of a delivery. They have the id of the run, through which the chain can be found.
 */
function aboutOf({ id, sessionKey, runId, route }: Delivery): object {
  return { deliveryId: id, sessionKey, ...optional({ runId }), channel: route.channel };
}

export class OutboxWorker implements LeasedWorker {
  readonly of: DeliveryClass;
  readonly #parts: OutboxParts;
  readonly #underWay = new Map<string, Promise<void>>();
  /** Records all attempts, but its pauses are used only for webhook events. */
  readonly #pace = new HookPace();
  #state: "new" | "open" | "stopped" = "new";
  #recovering: Promise<void> | undefined;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    this.of = parts.of;
  }

  /** Settles the attempts that a crash left open, and then starts delivering. */
  async start(): Promise<void> {
    const recovered = this.#recover();
    this.#recovering = recovered
      .catch(() => {})
      .finally(() => {
        this.#recovering = undefined;
      });
    await recovered;
    if (this.#state === "stopped") return;
    this.#state = "open";
    this.#parts.lookAtDates();
  }

  /**
   * Settles attempts that a crash of another process, or a lost answer, left open. Can be called at any time.
   */
  sweep(): void {
    if (this.#state !== "open" || this.#recovering !== undefined) return;
    this.#recovering = this.#recover()
      .catch((error: unknown) => logRetry(this.#parts.world.log, error, "the outbox could not be swept"))
      .finally(() => {
        this.#recovering = undefined;
        this.#parts.lookAtDates();
      });
  }

  async #recover(): Promise<void> {
    const { commit, channels, world, owner, watchLease, of, onSettled } = this.#parts;
    const own = { owner, isUnderWay: (id: string) => this.#underWay.has(id) };
    const canRepeat = (route: Route): boolean => channels.get(route.channel)?.deduplicates === true;
    const failed = await commit(async (unit) => {
      const dead = watchLease === undefined ? {} : { from: "the dead" as const };
      const rows = await recoverOpenAttempts(unit.tx, { at: unit.now, canRepeat, ...dead, of, own });
      for (const row of rows) {
        tellOutcome(unit, row, { kind: "failed", code: "ambiguous", error: UNKNOWN });
        await onSettled?.(unit, row);
      }
      return rows;
    });
    for (const one of failed) {
      world.log.warn(aboutOf(one), "the outcome of a delivery is unknown; see npx parley-gateway deliveries");
    }
  }

  /** Starts no new attempts, and waits for those in progress. */
  async stop(): Promise<void> {
    this.#state = "stopped";
    await this.#recovering;
    await Promise.all(this.#underWay.values());
  }

  /**
   * Starts the deliveries of a place that are due. Returns the time of the next look. A place without room
   * needs none: the end of an attempt starts a look.
   */
  async begin({ kind: place, firstAt, nextAt }: StoredKind, places: number): Promise<number> {
    if (this.#state !== "open") return Number.POSITIVE_INFINITY;
    const { db, world } = this.#parts;
    const now = world.clock.now();
    const { rows, againAt } = this.#roomIn(place, places, now);
    if (rows > 0 && firstAt <= now) {
      // Attempts that begin now may not be stored yet.
      const due = await dueDeliveries(db, { place, now, limit: rows + this.#pace.underWay(place) });
      const free = due.filter(({ id }) => !this.#underWay.has(id));
      for (const delivery of free.slice(0, rows)) this.#begin(place, delivery);
    }
    const wakeAt = rows > 0 ? nextAt : againAt;
    return wakeAt !== null && wakeAt > now ? wakeAt : Number.POSITIVE_INFINITY;
  }

  /** Returns how many deliveries may start now. If it is 0, `againAt` is the time to look again. */
  #roomIn(place: string, places: number, now: number): { rows: number; againAt: number } {
    const pace = this.#pace;
    if (this.of === "texts") return { rows: TEXTS_AT_ONCE - pace.underWay(place), againAt: 0 };
    const elapsed = this.#parts.world.clock.monotonic();
    return {
      rows: Math.min(HOOKS_AT_ONCE - this.#underWay.size, pace.room(place, elapsed, places)),
      // Rounded up, because a time that equals `now` would set no timer.
      againAt: now + Math.ceil(pace.pausedUntil(place) - elapsed),
    };
  }

  #begin(place: string, delivery: Delivery): void {
    if (this.#state !== "open") return;
    this.#pace.noteBegin(place);
    const work = this.#attempt(place, delivery).finally(() => {
      this.#pace.noteEnd(place);
      this.#underWay.delete(delivery.id);
      this.#parts.lookAtDates();
    });
    this.#underWay.set(delivery.id, work);
  }

  /** Sends the parts that have not been acknowledged, one after the other, until one fails. */
  async #attempt(place: string, delivery: Delivery): Promise<void> {
    const limit = this.#parts.channels.get(delivery.route.channel)?.textMaxChars;
    const isWhole = limit === undefined || delivery.fileId !== undefined;
    const parts = isWhole ? [delivery.text] : splitText(delivery.text, limit);
    // Without its channel a text is not split, so the next part may not exist. It is refused nevertheless.
    const last = Math.max(parts.length, delivery.partsSent + 1);
    for (let part = delivery.partsSent + 1; part <= last; part += 1) {
      const { choices, answers } = delivery.controls ?? {};
      const message = {
        text: parts[part - 1] ?? "",
        part,
        parts: parts.length,
        ...(part === last ? optional({ choices }) : {}),
        ...(part === 1 ? optional({ answers }) : {}),
      };
      // Before the attempt begins, because this process may lose its lease while it reads.
      const read = await this.#withFile(delivery, message);
      if (!(await this.#mayBegin({ ...delivery, partsSent: part - 1 }))) return;
      const answer = "kind" in read ? read : await this.#passToChannel(delivery, read, message);
      this.#notePace(place, answer);
      const outcome = this.#settle(delivery, await this.#withoutAbsence(delivery, answer));
      const isLast = part === last;
      await this.#record(delivery, outcome.kind === "sent" && !isLast ? { kind: "part" } : outcome);
      if (outcome.kind !== "sent") return;
    }
  }

  #notePace(place: string, answer: DeliveryOutcome): void {
    if (answer.kind === "retry")
      this.#pace.noteFailure(place, this.#parts.world.clock.monotonic(), answer.afterMs);
    else this.#pace.noteSuccess(place);
  }

  /** Decides whether a delivery without its channel or account waits or fails (OB1). */
  async #withoutAbsence(delivery: Delivery, answer: DeliveryOutcome): Promise<Outcome> {
    if (answer.kind !== "absent") return answer;
    const { db, world, isConfigured } = this.#parts;
    const { error } = answer;
    if (isConfigured?.(delivery.route) === true) return { kind: "retry", error };
    if (kindOf(db) === "sqlite") return { kind: "refused", error };
    const isYoung = world.clock.now() < delivery.createdAt + ABSENT_MS;
    const waits = isYoung || !(await settingsAgree(db).catch(() => false));
    return { kind: waits ? "retry" : "refused", error };
  }

  /** Returns whether this process may send the next part. Waits while another process could send it. */
  async #mayBegin(delivery: Delivery): Promise<boolean> {
    const { commit, world, owner, watchLease } = this.#parts;
    let mayBeOpen = false;
    for (;;) {
      const leaseHolds = watchLease?.();
      try {
        const begun = await commit((unit) => beginAttempt(unit.tx, delivery, owner));
        // If the answer was late, another process may have settled the attempt: ask again.
        if (!begun || leaseHolds?.() !== false) return begun;
        mayBeOpen = true;
      } catch (error) {
        mayBeOpen ||= isInDoubt(error);
        logRetry(withFields(world.log, aboutOf(delivery)), error, "a delivery attempt could not be recorded");
      }
      await pause(world.clock, RETRY_MIN_MS);
      if (this.#state !== "stopped") continue;
      // Nothing was sent, so the outcome of the attempt is known.
      const again = {
        kind: "retry",
        error: "the gateway stopped",
        nextAttemptAt: world.clock.now(),
      } as const;
      if (mayBeOpen) await this.#record(delivery, again);
      return false;
    }
  }

  /** Records the outcome of an attempt. Retries until the store accepts it. */
  async #record(delivery: Delivery, outcome: AttemptOutcome): Promise<void> {
    const { commit, world, owner, onSettled } = this.#parts;
    const isLast = outcome.kind !== "part" && outcome.kind !== "retry";
    let mayBeStored = false;
    for (;;) {
      try {
        await commit(async (unit) => {
          // First, because a clean-up locks its date before it queues texts.
          if (isLast) await onSettled?.(unit, delivery);
          const ended = await endAttempt(unit.tx, { id: delivery.id, owner }, outcome, unit.now);
          if (ended || mayBeStored) tellOutcome(unit, delivery, outcome);
        });
        return;
      } catch (error) {
        mayBeStored ||= isInDoubt(error);
        logRetry(
          withFields(world.log, aboutOf(delivery)),
          error,
          "the outcome of a delivery could not be stored",
        );
        if (this.#state === "stopped") return;
        await pause(this.#parts.world.clock, RETRY_MIN_MS);
      }
    }
  }

  /** Passes a text or a file to the channel. `withoutFile`: what is sent if the platform refuses the file. */
  async #passToChannel(delivery: Delivery, sent: Content, withoutFile: Content): Promise<DeliveryOutcome> {
    const { id, sessionKey, route, runId } = delivery;
    // Taken for each part, because a channel is closed when it was replaced and no call is under way.
    const channel = this.#parts.channels.get(route.channel);
    if (channel === undefined) return { kind: "absent", error: `no channel "${route.channel}" is connected` };
    const named = optional({ runId });
    try {
      const about = { deliveryId: id, sessionKey, route, ...named };
      const answer = await channel.deliver({ ...about, ...sent });
      if (sent.file === undefined || answer.kind !== "refused") return answer;
      // The platform certainly shows no file, for example because it is too large there.
      return await channel.deliver({ ...about, ...withoutFile });
    } catch (error) {
      // It is not known whether the text was sent before the exception.
      this.#parts.world.log.error({ err: error, ...aboutOf(delivery) }, "a channel failed");
      const text = error instanceof Error ? error.message : String(error);
      return channel.deduplicates === true
        ? { kind: "retry", error: text }
        : { kind: "unknown", error: text };
    }
  }

  /** Adds the delivery's file. If the file was deleted, the text, which names it, is sent without it. */
  async #withFile({ fileId }: Delivery, message: Content): Promise<Content | DeliveryOutcome> {
    if (fileId === undefined) return message;
    const { db } = this.#parts;
    try {
      const [facts, content] = [await getSentFile(db, fileId), await contentOfFile(db, fileId)];
      if (facts === undefined || content === undefined) return message;
      const { name, mimeType, caption } = facts;
      return { ...message, text: caption, file: { name, mimeType, data: Buffer.from(content, "base64") } };
    } catch (error) {
      return { kind: "retry", error: `the file could not be read: ${String(error)}` };
    }
  }

  #settle(delivery: Delivery, outcome: Outcome): AttemptOutcome {
    const { world } = this.#parts;
    const now = world.clock.now();
    switch (outcome.kind) {
      case "sent":
        return { kind: "sent" };
      case "refused":
        return { kind: "failed", code: "refused", error: outcome.error };
      case "skipped":
        return { kind: "skipped", code: "not_wanted", error: outcome.error };
      case "unknown":
        return { kind: "failed", code: "ambiguous", error: outcome.error };
      case "retry": {
        if (now >= delivery.giveUpAt) return { kind: "failed", code: "gave_up", error: outcome.error };
        const backoffMs = grownPause(RETRY_MIN_MS, RETRY_MAX_MS, delivery.attempts);
        const jitteredMs = backoffMs * (0.75 + world.random() / 2);
        return {
          kind: "retry",
          error: outcome.error,
          nextAttemptAt: now + Math.round(outcome.afterMs ?? jitteredMs),
        };
      }
    }
  }
}
