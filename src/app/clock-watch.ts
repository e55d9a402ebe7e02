// Watches the clock on which stored dates depend. Part of the composition root. If the clock is set back,
// even while no gateway runs, the stored dates are recomputed. Otherwise they would be reached too late.

import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Engine } from "../engine/engine.ts";
import { INBOUND_DEADLINE } from "../flows/delivery/inbound-files.ts";
import { listProcesses } from "../store/queries/processes.ts";
import { newestTime, planAfterStep } from "../store/queries/reschedule.ts";
import type { Timer, World } from "../world.ts";
import { FEATURE_DEADLINES, planFeaturesAgain } from "./features.ts";

const LOOK_MS = 5_000;
/** Smaller changes are normal corrections by time servers. */
const STEP_MIN_MS = 2_000;
/**
 * Like `STEP_MIN_MS`, for the check at a start. It is higher, because the stored time may come from another
 * machine.
 */
const START_STEP_MIN_MS = 60_000;

interface ClockParts {
  readonly engine: Engine;
  readonly world: World;
  readonly settings: Settings;
}

export class ClockWatch {
  readonly #parts: ClockParts;
  #timer: Timer | undefined;
  #looking: Promise<void> = Promise.resolve();
  #stopped = false;
  #offsetMs: number;

  constructor(parts: ClockParts) {
    this.#parts = parts;
    this.#offsetMs = this.#offset();
  }

  /** Compares the clock with the last stored time, then watches it. */
  async start(): Promise<void> {
    const { engine, world } = this.#parts;
    const now = world.clock.now();
    const before = await newestTime(engine.store.db);
    if (before - now > START_STEP_MIN_MS) await this.#replan(now, before);
    this.#lookLater();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  #offset(): number {
    const { clock } = this.#parts.world;
    return clock.now() - clock.monotonic();
  }

  #lookLater(): void {
    const { clock } = this.#parts.world;
    if (this.#stopped) return;
    this.#timer = clock.after(LOOK_MS, () => {
      this.#looking = this.#look().then(() => this.#lookLater());
    });
  }

  async #look(): Promise<void> {
    const { world } = this.#parts;
    const offset = this.#offset();
    const back = this.#offsetMs - offset;
    if (back <= STEP_MIN_MS) {
      // The clock was not set back, so its new offset is accepted.
      this.#offsetMs = offset;
      return;
    }
    try {
      const now = world.clock.now();
      if (await this.#isOldest()) await this.#replan(now, now + back);
      this.#offsetMs = offset;
    } catch (error) {
      world.log.warn({ err: error }, "stored dates could not be recomputed; trying again later");
    }
  }

  /** Returns whether this is the oldest of the gateways. Only that one moves the dates, so they move once. */
  async #isOldest(): Promise<boolean> {
    const { engine } = this.#parts;
    const oldest = (await listProcesses(engine.store.db, engine.now())).at(-1);
    return oldest === undefined || oldest.processId === engine.processId;
  }

  async #replan(now: number, before: number): Promise<void> {
    const { engine, world, settings } = this.#parts;
    world.log.warn({ backMs: before - now }, "the clock was set back; recomputing stored dates");
    const kinds = { calendar: FEATURE_DEADLINES, short: INBOUND_DEADLINE };
    await engine.commit((unit) => planAfterStep(unit.tx, { now, before }, kinds));
    await planFeaturesAgain(engine, settings);
    engine.lookAtDates();
  }
}
