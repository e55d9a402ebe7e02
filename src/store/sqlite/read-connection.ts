// Runs slow reads of the embedded store, for example a search in a million messages, in the read worker. The
// read worker is a separate thread, so slow reads do not block the event loop. The first request starts the
// thread, so a gateway without slow reads does not pay for it.
// SA2: requests run one at a time and in order. A waiting request is dropped if its caller aborts. A running
//      request completes and its result is discarded, because `node:sqlite` cannot interrupt it.
// SA3: at most `WAITING_MAX` requests wait; further ones are refused immediately. If the thread dies, only
//      the current request fails. The next one starts a new thread.

import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { CompiledQuery, DatabaseConnection, QueryResult } from "kysely";
import { asStoreProblem, StoreProblem } from "../problems.ts";
import type { ReadRequest, ReadResponse, ReadWorkerOptions } from "./read-worker.ts";

const WAITING_MAX = 256;
/**
 * Size of the thread's young generation. Copying rows between threads makes much short-lived garbage, and a
 * small young generation collects it early.
 */
const YOUNG_GENERATION_MB = 8;

interface PendingRead {
  readonly question: NonNullable<ReadRequest>;
  readonly resolve: (rows: Record<string, unknown>[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Returns the path of the thread's file, which is in this folder in the sources and in the build. */
function workerFile(): string {
  const source = fileURLToPath(new URL("./read-worker.ts", import.meta.url));
  return import.meta.filename.endsWith(".ts") ? source : source.replace(/\.ts$/, ".js");
}

export class ReadWorkerConnection implements DatabaseConnection {
  readonly #start: ReadWorkerOptions;
  #worker: Worker | undefined;
  #underWay: PendingRead | undefined;
  #waiting: PendingRead[] = [];
  #closed = false;

  constructor(start: ReadWorkerOptions) {
    this.#start = start;
  }

  async executeQuery<R>(
    { sql, parameters }: CompiledQuery,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<QueryResult<R>> {
    const signal = options?.signal;
    signal?.throwIfAborted();
    if (this.#closed) throw new Error("the store is closed");
    if (this.#waiting.length >= WAITING_MAX) {
      const detail = `${WAITING_MAX} searches are waiting already`;
      throw new StoreProblem("busy", this.#start.file, { detail });
    }
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>[]>();
    const asked: PendingRead = { question: { sql, parameters }, resolve, reject };
    const leave = (): void => {
      this.#waiting = this.#waiting.filter((one) => one !== asked);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave, { once: true });
    this.#waiting.push(asked);
    this.#next();
    try {
      return { rows: (await promise) as R[] };
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  // biome-ignore lint/correctness/useYield: streaming is not supported; the first call throws.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("the store cannot stream queries: read page by page");
  }

  /** Rejects waiting requests immediately. Resolves when the thread has closed the database. */
  async close(): Promise<void> {
    this.#closed = true;
    const worker = this.#worker;
    for (const { reject } of this.#waiting.splice(0)) reject(new Error("the store is closed"));
    if (worker === undefined) return;
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    worker.ref();
    worker.postMessage(undefined satisfies ReadRequest);
    await ended;
  }

  #next(): void {
    if (this.#underWay !== undefined) return;
    const asked = this.#waiting.shift();
    if (asked === undefined) {
      this.#worker?.unref();
      return;
    }
    this.#underWay = asked;
    try {
      this.#worker ??= this.#startWorker();
      this.#worker.ref();
      this.#worker.postMessage(asked.question);
    } catch (error) {
      this.#settle(({ reject }) => reject(error));
    }
  }

  #startWorker(): Worker {
    const worker = new Worker(workerFile(), {
      workerData: this.#start,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    worker.on("message", (answer: ReadResponse) => {
      this.#settle(({ resolve, reject }) => {
        if ("rows" in answer) return resolve(answer.rows);
        const { message, ...codes } = answer.failure;
        reject(asStoreProblem(Object.assign(new Error(message), codes), this.#start.file));
      });
    });
    let cause: unknown = new Error("the read worker of the store ended unexpectedly");
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
      this.#settle(({ reject }) => reject(cause));
    });
    return worker;
  }

  #settle(how: (asked: PendingRead) => void): void {
    const asked = this.#underWay;
    this.#underWay = undefined;
    if (asked !== undefined) how(asked);
    this.#next();
  }
}
