// Fake worlds for tests: predictable ids and randomness, a readable log, and a clock that a test can stop.
// K1: with one seed, everything except a real clock's readings is the same in every run. K2: a held (stopped)
// clock moves only in `advance`, and fires due timers in order of time.

import { Redactor } from "../../src/core/text/redact/redact.ts";
import { type Clock, realWorld, type Timer, type World } from "../../src/world.ts";
import { numbersFrom } from "./dice.ts";

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: Record<string, unknown>;
  readonly text: string;
}

export interface FakeWorld extends World {
  readonly logged: LogLine[];
  /**
   * Advances a held clock and fires due timers in order. The work that a timer starts is done before the next
   * timer fires.
   */
  advance(ms: number): Promise<void>;
  /** Returns the delays of the pending timers, shortest first. Always empty with a real clock. */
  pendingDelays(): number[];
  /** Waits for a timer that is due within `withinMs`, and returns its delay. */
  timerWithin(withinMs: number): Promise<number>;
}

export interface FakeWorldOptions {
  /** Default 1. */
  readonly seed?: number;
  /** "held" (default): the clock moves only by `advance`. "real": the system's clock and timers are used. */
  readonly clock?: "held" | "real";
  /** Start time of a held clock. Default: 2026-01-01T00:00:00Z. */
  readonly startMs?: number;
}

const START_MS = 1_767_225_600_000;

export function fakeWorld(options: FakeWorldOptions = {}): FakeWorld {
  const random = numbersFrom(options.seed ?? 1);
  const logged: LogLine[] = [];
  const write =
    (level: LogLine["level"]) =>
    (fields: object, text: string): void => {
      logged.push({ level, fields: { ...fields }, text });
    };
  const held = heldClock(options.startMs ?? START_MS);
  const isReal = options.clock === "real";
  let ids = 0;
  const uuid = (): string => {
    ids += 1;
    const seed = (options.seed ?? 1).toString(16).padStart(8, "0").slice(-8);
    return `${seed}-0000-4000-8000-${ids.toString(16).padStart(12, "0")}`;
  };
  return {
    clock: isReal ? realWorld({ level: "silent" }).clock : held.clock,
    ids: { uuid, orderedUuid: uuid },
    random,
    redactor: new Redactor([]),
    log: { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") },
    logged,
    advance: (ms) => {
      if (isReal) throw new Error("a real clock can't be advanced");
      return held.advance(ms);
    },
    pendingDelays: held.pendingDelays,
    timerWithin: held.timerWithin,
  };
}

/** Returns a fake world whose wall clock can be set without affecting its timers and its monotonic clock. */
export function settableWorld(): { world: FakeWorld; set(byMs: number): void } {
  const held = fakeWorld();
  const { clock } = held;
  let offset = 0;
  const set = (byMs: number): void => {
    offset += byMs;
  };
  const settable: Clock = {
    now: () => clock.now() + offset,
    monotonic: () => clock.monotonic(),
    at: (atMs, fire, keep) => clock.at(atMs - offset, fire, keep),
    after: (ms, fire, keep) => clock.after(ms, fire, keep),
  };
  return { world: { ...held, clock: settable }, set };
}

interface HeldTimer {
  readonly atMs: number;
  readonly fire: () => void;
}

function heldClock(startMs: number) {
  let nowMs = startMs;
  let timers: HeldTimer[] = [];
  let watchers: (() => void)[] = [];
  const clock: Clock = {
    now: () => Math.floor(nowMs),
    monotonic: () => nowMs - startMs,
    at: (atMs, fire): Timer => {
      const timer = { atMs, fire };
      timers.push(timer);
      for (const watcher of watchers) watcher();
      return {
        cancel: () => {
          timers = timers.filter((one) => one !== timer);
        },
      };
    },
    after: (ms, fire) => clock.at(nowMs + ms, fire),
  };
  const sorted = () => timers.toSorted((left, right) => left.atMs - right.atMs);
  return {
    clock,
    advance: async (ms: number): Promise<void> => {
      const untilMs = nowMs + ms;
      for (;;) {
        const [next] = sorted();
        if (next === undefined || next.atMs > untilMs) break;
        timers = timers.filter((one) => one !== next);
        nowMs = Math.max(nowMs, next.atMs);
        next.fire();
        await turn();
      }
      nowMs = untilMs;
      await turn();
    },
    pendingDelays: () => sorted().map((timer) => timer.atMs - nowMs),
    timerWithin: (withinMs: number): Promise<number> =>
      new Promise((resolve) => {
        const look = (): void => {
          const due = sorted().find((timer) => timer.atMs - nowMs <= withinMs);
          if (due === undefined) return;
          watchers = watchers.filter((watcher) => watcher !== look);
          resolve(due.atMs - nowMs);
        };
        watchers.push(look);
        look();
      }),
  };
}

/** Completes everything that needs no timer: microtasks, then one round of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Returns the same world with timers that call `take(fire, delay in ms, keep)` instead of `fire`. */
export function withTimers<W extends World>(
  world: W,
  take: (fire: () => void, ms: number, keep?: "alive") => () => void,
): W {
  const { clock } = world;
  const at: Clock["at"] = (atMs, fire, keep) => clock.at(atMs, take(fire, atMs - clock.now(), keep), keep);
  const after: Clock["after"] = (ms, fire, keep) => clock.after(ms, take(fire, ms, keep), keep);
  const monotonic = () => clock.monotonic();
  return { ...world, clock: { now: () => clock.now(), monotonic, at, after } };
}

/** Returns a real world in which timers with this delay have no effect. `skipped` counts these timers. */
export function worldWithoutTimers(delayMs: number): { world: World; skipped(): number } {
  let skipped = 0;
  const world = withTimers(realWorld({ level: "silent" }), (fire, ms) => {
    if (Math.round(ms / 100) * 100 !== delayMs) return fire;
    skipped += 1;
    return () => {};
  });
  return { world, skipped: () => skipped };
}
