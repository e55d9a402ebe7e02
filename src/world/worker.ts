// Starts a file of this program as a process of its own, for work that would block the event loop and could
// not be cancelled in a thread. Everything goes through the process's channel. The file ends when the channel
// closes.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

export interface Errand {
  /** Address of the file, beside the module that names it. Ends in `.ts`, as in the sources. */
  readonly file: URL;
  /** The first message to the process. */
  readonly order: object;
  /** Kills the process. */
  readonly signal: AbortSignal;
  /** Maximum memory of the process's JavaScript heap. Default: that of Node. */
  readonly heapMaxMb?: number;
  heard(message: unknown): void;
}

/** Runs the process until it has ended. Returns the error with which it could not start or be told. */
export async function runWorker({
  file,
  order,
  signal,
  heapMaxMb,
  heard,
}: Errand): Promise<Error | undefined> {
  const source = fileURLToPath(file);
  const path = import.meta.filename.endsWith(".ts") ? source : source.replace(/\.ts$/, ".js");
  const execArgv = heapMaxMb === undefined ? [] : [`--max-old-space-size=${heapMaxMb}`];
  const { promise: exited, resolve } = Promise.withResolvers<void>();
  const child = fork(path, { execArgv, stdio: "ignore", serialization: "advanced" });
  const stop = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  let problem: Error | undefined;
  child.on("message", heard);
  child.on("error", (error) => {
    problem = error;
    if (child.pid === undefined) resolve();
  });
  child.on("exit", () => resolve());
  child.send(order);
  await exited;
  signal.removeEventListener("abort", stop);
  return problem;
}
