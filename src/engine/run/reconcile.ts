// Corrects memory by the rows: after a commit without an answer, after lost hints, and in each sweep of a
// shared store.

import { endedSince } from "../../store/queries/runs/runs.ts";
import type { Timer } from "../../world.ts";
import type { EngineCore } from "../engine.ts";
import type { Executions } from "./executions.ts";
import { publishEnd } from "./finish.ts";
import { logRetry, STORE_RETRY_MS } from "./until-stored.ts";

const ENDS_MAX = 1_000;

interface ReconcilerParts extends EngineCore {
  readonly executions: Executions;
  /** Checks queues, deadlines, deliveries and anything else that may be due. */
  lookAround(): void;
}

export class Reconciler {
  readonly #parts: ReconcilerParts;
  #doubtSince = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
  }

  /** Records that a transaction that began at this time may have been committed. */
  noteDoubt(sinceMs: number): void {
    const { world, bus } = this.#parts;
    if (this.#stopped) return;
    this.#doubtSince = Math.min(this.#doubtSince, sinceMs);
    // A transaction that is still in progress gets time to end.
    this.#timer ??= world.clock.after(STORE_RETRY_MS, async () => {
      const doubtSince = this.#doubtSince;
      this.#doubtSince = Number.POSITIVE_INFINITY;
      this.#timer = undefined;
      try {
        if (!(await this.reconcile(doubtSince, bus.publish))) this.noteDoubt(doubtSince);
      } catch (error) {
        logRetry(world.log, error, "the result of a commit without an answer could not be read");
        this.noteDoubt(doubtSince);
      }
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /**
   * Corrects the executions of this process, publishes the ends of runs since this time (default: none),
   * wakes those who wait for ended runs and jobs, and looks at everything that may be due. Returns false if a
   * run was being claimed; then call it again.
   */
  async reconcile(sinceMs = Number.POSITIVE_INFINITY, publish = this.#parts.bus.hear): Promise<boolean> {
    const { store, watch, executions, lookAround } = this.#parts;
    const isSettled = await executions.compare();
    const ended = Number.isFinite(sinceMs) ? await endedSince(store.db, sinceMs, ENDS_MAX) : [];
    for (const run of ended) publishEnd(run, this.#parts, publish);
    await watch.look();
    lookAround();
    return isSettled;
  }
}
