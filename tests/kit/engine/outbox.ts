// Opens an outbox without an engine: the worker, and the loop that finds what is due for it.

import { OutboxWorker } from "../../../src/channels/outbound.ts";
import { Deadlines } from "../../../src/engine/deadlines.ts";

export interface Outbox {
  start(): Promise<void>;
  /** Looks for due deliveries. */
  look(): void;
  stop(): Promise<void>;
}

export function openOutbox(
  parts: Omit<ConstructorParameters<typeof OutboxWorker>[0], "lookAtDates">,
): Outbox {
  const look = (): void => dates.look();
  const worker = new OutboxWorker({ ...parts, lookAtDates: look });
  const { db, commit, world } = parts;
  const dates = new Deadlines({ db, commit, world, handlers: new Map(), workers: [worker] });
  return {
    look,
    async start() {
      dates.start();
      await worker.start();
    },
    async stop() {
      await Promise.all([worker.stop(), dates.stop()]);
    },
  };
}
