// Starts worker processes, distributes the seeds among them, and reads their output.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { TellingLine } from "./checks/telling-line.ts";

const WORKER = fileURLToPath(new URL("./worker.ts", import.meta.url));
/** Maximum number of characters of a failed worker's output that are kept. */
const LAST_WORDS_CHARS = 4_000;

export interface Order {
  readonly from: number;
  readonly count: number;
  /** Number of worker processes in parallel. Default 1. */
  readonly workers?: number;
  readonly mutant?: string;
  /** True if the stories have several processes on one store. */
  readonly cluster?: boolean;
  readonly trace?: boolean;
  /**
   * A folder for compiled code. It makes all workers except the first start faster. If absent, no code is
   * stored.
   */
  readonly cacheDir?: string;
}

interface Share {
  readonly from: number;
  readonly step: number;
  readonly count: number;
}

/** Runs one worker with its share of the seeds. Rejects if the worker fails. */
function work(
  order: Order,
  share: Share,
  hear: (line: TellingLine) => void,
  signal: AbortSignal,
): Promise<void> {
  const args = Object.entries(share).flatMap(([name, value]) => [`--${name}`, String(value)]);
  if (order.mutant !== undefined) args.push("--mutant", order.mutant);
  if (order.trace === true) args.push("--trace");
  if (order.cluster === true) args.push("--cluster");
  const cache = order.cacheDir === undefined ? {} : { NODE_COMPILE_CACHE: order.cacheDir };
  const child = spawn(process.execPath, [WORKER, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    // Node uses one thread for files, so that file operations finish in order (`time.ts`).
    env: { ...process.env, UV_THREADPOOL_SIZE: "1", ...cache },
    signal,
  });
  let words = "";
  child.stderr.on("data", (text) => {
    words = `${words}${text}`.slice(-LAST_WORDS_CHARS);
  });
  createInterface({ input: child.stdout }).on("line", (line) => hear(JSON.parse(line) as TellingLine));
  return new Promise((resolve, reject) => {
    child.on("error", (error) => (signal.aborted ? resolve() : reject(error)));
    child.on("close", (code) => {
      if (code === 0 || signal.aborted) resolve();
      else reject(new Error(`a worker ended with ${code}: ${words}`));
    });
  });
}

/** Plays all stories, but stops at a failure. Resolves with the first failure. */
export async function tellAll(
  order: Order,
  hear: (line: TellingLine) => void = () => {},
): Promise<TellingLine | undefined> {
  const step = Math.max(1, Math.min(order.workers ?? 1, order.count));
  const stop = new AbortController();
  let wrong: TellingLine | undefined;
  const listen = (line: TellingLine): void => {
    hear(line);
    if (line.wrong === undefined || wrong !== undefined) return;
    wrong = line;
    stop.abort();
  };
  const shares = Array.from({ length: step }, (_, at) => {
    return { from: order.from + at, step, count: Math.ceil((order.count - at) / step) };
  });
  await Promise.all(shares.map((share) => work(order, share, listen, stop.signal)));
  return wrong;
}
