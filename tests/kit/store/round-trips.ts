// Counts what this process sends to PostgreSQL, at the driver. A statement that is sent while others of its
// connection have no answer yet shares their round trip; any other one is a separate round trip.

import pg from "pg";

export interface Sent {
  readonly text: string;
  /** False: it shares the round trip of an earlier one. */
  readonly isTrip: boolean;
  /** Between the begin of a transaction and its commit, both included. */
  readonly inTransaction: boolean;
}

export interface TripCounter {
  /** Returns the statements sent since the last call. */
  take(): Sent[];
  /** Stops counting. */
  stop(): void;
}

interface Link {
  unanswered: number;
  inTransaction: boolean;
}

const ENDS = ["commit", "rollback"];

/** Starts counting, on all connections. */
export function countTrips(): TripCounter {
  let sent: Sent[] = [];
  const links = new WeakMap<object, Link>();
  const { prototype } = pg.Client;
  const plain = prototype.query;
  prototype.query = function counted(this: object, ...given: unknown[]) {
    const link = links.get(this) ?? { unanswered: 0, inTransaction: false };
    links.set(this, link);
    const [asked] = given;
    const text = typeof asked === "string" ? asked : (asked as { text: string }).text;
    link.inTransaction ||= text === "begin";
    sent.push({ text, isTrip: link.unanswered === 0, inTransaction: link.inTransaction });
    if (ENDS.includes(text)) link.inTransaction = false;
    link.unanswered += 1;
    const answer = (plain as (...all: unknown[]) => Promise<unknown>).apply(this, given);
    const over = (): void => {
      link.unanswered -= 1;
    };
    answer.then(over, over);
    return answer;
  } as never;
  return {
    take() {
      const taken = sent;
      sent = [];
      return taken;
    },
    stop() {
      prototype.query = plain;
    },
  };
}
