// Owns reads of the embedded store that may take long, such as a search in a million messages: they are done
// in a thread of their own, and the event loop goes on meanwhile.
// SA1: the thread is started by the first question: a gateway that is never asked does not pay for it.
// SA2: one question at a time, in the order of asking; of those that wait, one whose asker has left is
//      dropped. One that is under way is finished, and nobody hears of it: SQLite can't be told to stop.
// SA3: at most `WAITING_MAX` wait; one more is refused at once.
// SA4: a thread that dies takes its question with it, and no other: the next one starts a new thread.

import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { CompiledQuery, DatabaseConnection, QueryResult } from "kysely";
import { asStoreProblem, StoreProblem } from "./problems.ts";
import type { ReadRequest, ReadResponse, ReadWorkerOptions } from "./sqlite-read-worker.ts";

const WAITING_MAX = 256;
/** Rows of one page are cloned from one thread to the other: garbage that is young need not become old. */
const YOUNG_GENERATION_MB = 8;

interface PendingRead {
  readonly question: NonNullable<ReadRequest>;
  readonly resolve: (rows: Record<string, unknown>[]) => void;
  readonly reject: (error: unknown) => void;
}

/** The thread's file: beside this one, built or not. */
function workerFile(): string {
  const source = fileURLToPath(new URL("./sqlite-read-worker.ts", import.meta.url));
  return import.meta.filename.endsWith(".ts") ? source : source.replace(/\.ts$/, ".js");
}

/** A connection whose queries are answered by the other thread. */
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
      const detail = `${WAITING_MAX} searches wait already`;
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

  // biome-ignore lint/correctness/useYield: streaming is not offered; whoever asks learns it at once.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("queries of the embedded store are not streamed: read pages");
  }

  /** Resolves when nothing of the thread has the file open any more. What waits is rejected at once. */
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
      this.#worker ??= this.#started();
      this.#worker.ref();
      this.#worker.postMessage(asked.question);
    } catch (error) {
      this.#settle(({ reject }) => reject(error));
    }
  }

  #started(): Worker {
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
    let cause: unknown = new Error("the thread that reads the store aside ended");
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
