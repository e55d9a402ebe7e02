// Finds the results of a commit whose answer was lost, and publishes them. Retries until the store has
// answered, because no other code publishes them.

import { endedSince } from "../../store/queries/runs/runs.ts";
import type { Store } from "../../store/sql.ts";
import { pause } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import type { Bus } from "../bus.ts";
import type { EndWatch } from "../lanes/end-watch.ts";
import type { Executions } from "./executions.ts";
import { publishEnd } from "./finish.ts";
import { logRetry, STORE_RETRY_MS } from "./until-stored.ts";

/** Maximum number of run ends that are published again. */
const ENDS_MAX = 1_000;

interface UnconfirmedCommitsParts {
  readonly store: Store;
  readonly world: World;
  readonly bus: Bus;
  readonly watch: EndWatch;
  readonly executions: Executions;
  /** Checks queues, deadlines, deliveries and anything else that may be due. */
  lookAround(): void;
}

export class UnconfirmedCommits {
  readonly #parts: UnconfirmedCommitsParts;
  #sinceMs = Number.POSITIVE_INFINITY;
  #working = false;
  #stopped = false;

  constructor(parts: UnconfirmedCommitsParts) {
    this.#parts = parts;
  }

  /** Records that a transaction that began at this time may have been committed. */
  note(sinceMs: number): void {
    this.#sinceMs = Math.min(this.#sinceMs, sinceMs);
    if (this.#working || this.#stopped) return;
    this.#working = true;
    void this.#work();
  }

  stop(): void {
    this.#stopped = true;
  }

  async #work(): Promise<void> {
    const { world } = this.#parts;
    while (this.#sinceMs !== Number.POSITIVE_INFINITY && !this.#stopped) {
      // Gives a transaction that is still in progress time to end.
      await pause(world.clock, STORE_RETRY_MS);
      const sinceMs = this.#sinceMs;
      this.#sinceMs = Number.POSITIVE_INFINITY;
      try {
        if (!this.#stopped && !(await this.#look(sinceMs))) this.#sinceMs = Math.min(this.#sinceMs, sinceMs);
      } catch (error) {
        this.#sinceMs = Math.min(this.#sinceMs, sinceMs);
        logRetry(world.log, error, "the result of a commit without an answer could not be read");
      }
    }
    this.#working = false;
  }

  /** Returns false if the lanes must be checked again. */
  async #look(sinceMs: number): Promise<boolean> {
    const { store, executions, watch, lookAround } = this.#parts;
    const isSettled = await executions.compare();
    for (const run of await endedSince(store.db, sinceMs, ENDS_MAX)) publishEnd(run, this.#parts);
    await watch.look();
    lookAround();
    return isSettled;
  }
}
