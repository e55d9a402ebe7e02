// Owns worker processes from outside: which seeds they tell, with how many at once, and what they print.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { TellingLine } from "./telling-line.ts";

const WORKER = fileURLToPath(new URL("./worker.ts", import.meta.url));
/** Of what a worker that breaks says on its way out. */
const LAST_WORDS_CHARS = 4_000;

export interface Order {
  readonly from: number;
  readonly count: number;
  /** Worker processes side by side. Default 1. */
  readonly workers?: number;
  readonly mutant?: string;
  /** Stories of several processes over one store. */
  readonly cluster?: boolean;
  readonly trace?: boolean;
  /** A folder for compiled code, so that every worker but the first starts sooner. Default: none. */
  readonly cacheDir?: string;
}

interface Share {
  readonly from: number;
  readonly step: number;
  readonly count: number;
}

/** One worker with its share. Rejects when it breaks. */
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
    // One thread for files: they come back in the order in which they were asked for (`time.ts`).
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

/** Tells stories until all are told or one goes wrong. Resolves with the first that does. */
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
