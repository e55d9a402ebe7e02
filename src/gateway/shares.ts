// Owns how much each caller may use at once of what all callers share: connections, calls, bytes.
// SH1: what one caller may use is less than what there is, so that others still find room.
// SH2: nothing is remembered of a caller that uses nothing.

const MIB = 1024 * 1024;

interface Limits {
  readonly ofOne: number;
  readonly all: number;
}

/** How much of one thing is in use, by caller. */
export class Shares {
  readonly #limits: Limits;
  readonly #used = new Map<string, number>();
  #all = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** The amount that this caller uses now. */
  usedBy(who: string): number {
    return this.#used.get(who) ?? 0;
  }

  inUse(): number {
    return this.#all;
  }

  hasRoom(who: string, amount = 1): boolean {
    return this.#all + amount <= this.#limits.all && this.usedBy(who) + amount <= this.#limits.ofOne;
  }

  /** False: there is no room, and nothing was taken. */
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

/** The shares of one gateway, by the address of the connection or by the id of the token. */
export interface GatewayShares {
  /** TCP connections, by address. */
  readonly sockets: Shares;
  /** WebSockets, by address. */
  readonly links: Shares;
  /** WebSockets that have connected, by token. */
  readonly clients: Shares;
  /** Requests that are not answered yet, by token. */
  readonly calls: Shares;
  /** Bytes of bodies and frames that are not whole, or not answered yet, by token. */
  readonly bytes: Shares;
}

/** WebSockets at once. */
export const CONNECTIONS_MAX = 2_000;
/** TCP connections of every kind; more are not accepted. */
export const SOCKETS_MAX = 4_000;

export function createShares(): GatewayShares {
  return {
    sockets: new Shares({ ofOne: 3_600, all: SOCKETS_MAX }),
    links: new Shares({ ofOne: 1_800, all: CONNECTIONS_MAX }),
    clients: new Shares({ ofOne: 1_500, all: CONNECTIONS_MAX }),
    calls: new Shares({ ofOne: 2_048, all: 8_192 }),
    bytes: new Shares({ ofOne: 48 * MIB, all: 128 * MIB }),
  };
}
