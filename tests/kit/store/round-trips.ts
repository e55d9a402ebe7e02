// Counts the statements that this process sends to PostgreSQL, inside the driver. If an earlier statement of
// the same connection has no answer yet, a statement shares that one's round trip. Otherwise it is a new
// round trip.

import pg from "pg";

export interface Sent {
  readonly text: string;
  /** True if the statement is a new round trip. False if it shares that of an earlier statement. */
  readonly isTrip: boolean;
  /** True if the statement was sent inside a transaction, which includes `begin` and `commit`. */
  readonly inTransaction: boolean;
}

export interface TripCounter {
  /** Returns the statements since the last call. */
  take(): Sent[];
  /** Stops counting. */
  stop(): void;
}

interface Link {
  unanswered: number;
  inTransaction: boolean;
}

const ENDS = ["commit", "rollback"];

/** Starts counting the statements of all connections. */
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
