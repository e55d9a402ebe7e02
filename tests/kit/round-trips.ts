// Counts what this process sends to PostgreSQL, at the driver: a statement that is sent while others of its connection have no
// answer yet travels with them, any other one is a round trip of its own.

import pg from "pg";

export interface Sent {
  readonly text: string;
  /** False: it travels with one before it. */
  readonly isTrip: boolean;
  /** Between the begin of a transaction and its commit, both included. */
  readonly inTransaction: boolean;
}

export interface TripCounter {
  /** Returns the statements sent since the last call. */
  take(): Sent[];
  /** Counts no longer. */
  stop(): void;
}

interface Link {
  unanswered: number;
  inTransaction: boolean;
}

const ENDS = ["commit", "rollback"];

/** Counts from now on, on whatever connection. */
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
