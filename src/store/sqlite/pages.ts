// Checks an open embedded store for damaged pages, one table at a time, in a thread that ends afterwards.
// After each table the check pauses for as long as that table took, so that reads and writes are not delayed.

import { CompiledQuery } from "kysely";
import { pause } from "../../world/pause.ts";
import type { Clock, Timer } from "../../world/plain.ts";
import type { Log } from "../../world.ts";
import { StoreProblem } from "../problems.ts";
import { ReadWorkerConnection } from "./read-connection.ts";
import type { ReadWorkerOptions } from "./read-worker.ts";

/** Delay after the start, so that the check does not slow down the first requests. */
const FIRST_MS = 10 * 60_000;
const EVERY_MS = 24 * 3_600_000;
/** Size of the cache. Each page is read only once, so a larger cache would only take memory. */
const CACHE_KIB = 1_024;

const TABLES = `select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'
  order by name`;

interface PageCheckParts {
  readonly start: ReadWorkerOptions;
  readonly clock: Clock;
  readonly log: Log;
}

export class PageCheck {
  readonly #parts: PageCheckParts;
  readonly #stop = new AbortController();
  #timer: Timer | undefined;
  #underWay: Promise<void> | undefined;

  constructor(parts: PageCheckParts) {
    this.#parts = parts;
    this.#plan(FIRST_MS);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#timer?.cancel();
    await this.#underWay;
  }

  #plan(delayMs: number): void {
    const { clock } = this.#parts;
    this.#timer = clock.after(delayMs, () => {
      this.#underWay = this.#check().then(() => {
        if (!this.#stop.signal.aborted) this.#plan(EVERY_MS);
      });
    });
  }

  async #check(): Promise<void> {
    const { start, log } = this.#parts;
    const reads = new ReadWorkerConnection({ ...start, cacheKib: CACHE_KIB });
    const ask = async (sql: string): Promise<string[]> => {
      const { rows } = await reads.executeQuery<Record<string, unknown>>(CompiledQuery.raw(sql));
      return rows.map((row) => String(Object.values(row)[0]));
    };
    try {
      const damage = await this.#damageIn(ask);
      if (damage.length === 0) return;
      const text =
        "the store has damaged pages. Make a backup, stop the gateway: npx parley-gateway store recover";
      log.error({ file: start.file, damage }, text);
    } catch (error) {
      if (!this.#stop.signal.aborted)
        log.warn({ err: error, file: start.file }, "could not check the store's pages");
    } finally {
      await reads.close();
    }
  }

  /** Returns the first damage found in each table. */
  async #damageIn(ask: (sql: string) => Promise<string[]>): Promise<string[]> {
    const { clock } = this.#parts;
    const damage: string[] = [];
    for (const table of await ask(TABLES)) {
      if (this.#stop.signal.aborted) break;
      const began = clock.monotonic();
      const [found = "ok"] = await ask(`pragma quick_check("${table.replaceAll('"', '""')}")`).catch(
        (error: unknown) => {
          // The check itself fails at some damaged pages.
          if (error instanceof StoreProblem && error.problem === "corrupt") return [error.message];
          throw error;
        },
      );
      if (found !== "ok") damage.push(`${table}: ${found}`);
      await pause(clock, clock.monotonic() - began, this.#stop.signal);
    }
    return damage;
  }
}
