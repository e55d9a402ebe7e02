// Provides time, ids and randomness on every JavaScript platform: Node, browsers, workers. The client library
// uses nothing else; `world.ts` adds the rest of a process.
// PW1: no Node module is imported here, because the client must also work in browsers.

/** A timer that can be cancelled. Cancelling it twice, or after it has fired, has no effect. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds, for durations only. */
  monotonic(): number;
  /** Calls `fire` once, no earlier than the date `atMs`. Keeps the process alive only with `keep`. */
  at(atMs: number, fire: () => void, keep?: "alive"): Timer;
  /**
   * Calls `fire` once, no earlier than `ms` from now on the monotonic clock, even if the wall clock is set
   * meanwhile. Keeps the process alive only with `keep`.
   */
  after(ms: number, fire: () => void, keep?: "alive"): Timer;
}

export interface Ids {
  /** Returns a random UUID in its 36-character form. */
  uuid(): string;
  /**
   * Returns a UUID that sorts by its creation time (version 7). In large tables an index of such ids grows at
   * its end, while random ids spread their writes. Its first characters are not unique.
   */
  orderedUuid(): string;
}

/** Longer timers are set in steps, because the platform's limit is 2^31-1 ms. */
const TIMER_STEP_MAX_MS = 2_000_000_000;

/**
 * The platform rounds times, so one timer in twelve fires up to this much too early. It is set again then. A
 * timer that is earlier than that saw the wall clock go back, and must not wait for it.
 */
const ROUNDED_MS = 2;

function timer(left: () => number, fire: () => void, keep?: "alive"): Timer {
  let handle: ReturnType<typeof setTimeout>;
  const arm = (): void => {
    const leftMs = Math.max(0, left());
    const stepMs = Math.min(leftMs, TIMER_STEP_MAX_MS);
    handle = setTimeout(() => {
      const restMs = left();
      if (stepMs < leftMs || (restMs > 0 && restMs <= ROUNDED_MS)) arm();
      else fire();
    }, stepMs);
    // In a browser a timer is a number, and there is no process to keep alive.
    if (keep === undefined && typeof handle === "object") handle.unref();
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
}

/** Implements `Clock.at`. */
export const timerAt: Clock["at"] = (atMs, fire, keep) => timer(() => atMs - Date.now(), fire, keep);

/**
 * Returns a random UUID. `crypto.randomUUID` is missing on pages that were loaded neither over HTTPS nor from
 * this machine.
 */
function uuid(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** Number of ordered ids in one millisecond: their 12 bits follow the time (RFC 9562). */
const IDS_PER_MS = 4_096;

/** Returns a function that returns ids in order, also within one millisecond. */
function createOrderedUuids(): () => string {
  let last = 0;
  return () => {
    last = Math.max(Date.now() * IDS_PER_MS, last + 1);
    const at = last.toString(16).padStart(15, "0");
    return `${at.slice(0, 8)}-${at.slice(8, 12)}-7${at.slice(12)}${uuid().slice(18)}`;
  };
}

/** The clock of a client, which has no dates to wait for. */
export const plainClock: Omit<Clock, "at"> = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, fire, keep) => {
    const dueMs = performance.now() + ms;
    return timer(() => dueMs - performance.now(), fire, keep);
  },
};

export const plainIds: Ids = { uuid, orderedUuid: createOrderedUuids() };

export const plainRandom = Math.random;
