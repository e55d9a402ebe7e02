// Limits each caller's use of shared resources: connections, calls, bytes.
// A caller's limit is lower than the total, so that one caller cannot use up everything.
// A caller that uses nothing has no entry.

const MIB = 1024 * 1024;

interface Limits {
  readonly ofOne: number;
  readonly all: number;
}

/** Counts the use of one resource, by caller. */
export class Shares {
  readonly #limits: Limits;
  readonly #used = new Map<string, number>();
  #all = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Returns this caller's current use. */
  usedBy(who: string): number {
    return this.#used.get(who) ?? 0;
  }

  inUse(): number {
    return this.#all;
  }

  hasRoom(who: string, amount = 1): boolean {
    return this.#all + amount <= this.#limits.all && this.usedBy(who) + amount <= this.#limits.ofOne;
  }

  /** Returns false, and takes nothing, if there is no room. */
  take(who: string, amount = 1): boolean {
    if (!this.hasRoom(who, amount)) return false;
    this.#all += amount;
    this.#used.set(who, this.usedBy(who) + amount);
    return true;
  }

  give(who: string, amount = 1): void {
    this.#all -= amount;
    const left = this.usedBy(who) - amount;
    if (left > 0) this.#used.set(who, left);
    else this.#used.delete(who);
  }
}

export type GatewayShares = ReturnType<typeof createShares>;

/** Maximum number of concurrent WebSockets. */
export const CONNECTIONS_MAX = 2_000;
/** Maximum number of TCP connections of every kind; further ones are closed. */
export const SOCKETS_MAX = 4_000;

/** The resources of one gateway, by the address of the connection or by the id of the token. */
export function createShares() {
  return {
    /** TCP connections, by address. */
    sockets: new Shares({ ofOne: 3_600, all: SOCKETS_MAX }),
    /** WebSockets, by address. */
    links: new Shares({ ofOne: 1_800, all: CONNECTIONS_MAX }),
    /** Connected WebSockets, by token. */
    clients: new Shares({ ofOne: 1_500, all: CONNECTIONS_MAX }),
    /** Unanswered requests, by token. */
    calls: new Shares({ ofOne: 2_048, all: 8_192 }),
    /** Bytes of bodies and frames that are incomplete or unanswered, by token. */
    bytes: new Shares({ ofOne: 48 * MIB, all: 128 * MIB }),
  };
}
