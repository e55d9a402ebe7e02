// Owns who listens at a channel's accounts, such as one bot: one process of the deployment at a time.
// AC1: an account is listened at only while it is held; whoever loses it stops before anybody else can begin,
//      as long as it can reach its clock: a process that stood still finds out at its next beat.
// AC2: what its holder leaves, by a stop or by its death, the next one takes up.

import type { Commit } from "../engine/unit.ts";
import { hold, letGo } from "../store/holdings.ts";
import { LEASE_MS } from "../store/processes.ts";
import type { Timer, World } from "../world.ts";

/** How often a holding is asked for, or kept. */
const HOLD_MS = 1_000;

/** One account of a channel, as far as only one process may listen at it. */
export interface Account {
  /** Unique in the deployment, like `telegram:123456`. */
  readonly name: string;
  /** Listens until the signal fires. A throw is logged, and it begins anew. */
  listen(signal: AbortSignal): Promise<void>;
}

interface AccountParts {
  readonly commit: Commit;
  readonly world: World;
  /** This process. */
  readonly owner: string;
}

/** Listens at accounts, each while this process holds it. */
export class Accounts {
  readonly #parts: AccountParts;
  readonly #keepers: Keeper[] = [];

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  start(accounts: readonly Account[]): void {
    for (const account of accounts) {
      const keeper = new Keeper(this.#parts, account);
      this.#keepers.push(keeper);
      keeper.look();
    }
  }

  /** Stops to listen, and leaves the accounts to others. */
  async stop(): Promise<void> {
    await Promise.all(this.#keepers.splice(0).map((keeper) => keeper.stop()));
  }
}

class Keeper {
  readonly #parts: AccountParts;
  readonly #account: Account;
  #listening: { readonly stopper: AbortController; readonly over: Promise<void> } | undefined;
  /** Until then nobody else may have it, by the monotonic clock: from before it was last asked for. */
  #heldUntil = 0;
  #working: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #expiry: Timer | undefined;
  #stopped = false;

  constructor(parts: AccountParts, account: Account) {
    this.#parts = parts;
    this.#account = account;
  }

  look(): void {
    this.#working = this.#look();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#working;
    await this.#leave();
    const { commit, owner, world } = this.#parts;
    const { name } = this.#account;
    await commit((unit) => letGo(unit.tx, name, owner)).catch((error: unknown) =>
      world.log.warn({ err: error, account: name }, "an account could not be given back; it is free soon"),
    );
  }

  async #look(): Promise<void> {
    const { commit, owner, world } = this.#parts;
    const { clock } = world;
    const askedAt = clock.monotonic();
    try {
      const mine = await commit((unit) => hold(unit.tx, this.#account.name, owner, unit.now));
      if (mine) this.#heldUntil = askedAt + LEASE_MS;
      if (mine && !this.#stopped) this.#begin();
      else await this.#leave();
    } catch (error) {
      world.log.warn({ err: error, account: this.#account.name }, "an account could not be asked for");
    }
    this.#watchExpiry();
    if (!this.#stopped) this.#timer = clock.at(clock.now() + HOLD_MS, () => this.look());
  }

  /** A holding that can't be kept is over before the others take this process for dead. */
  #watchExpiry(): void {
    const { clock } = this.#parts.world;
    this.#expiry?.cancel();
    if (this.#listening === undefined) return;
    const leftMs = Math.max(0, this.#heldUntil - clock.monotonic());
    this.#expiry = clock.at(clock.now() + leftMs, () => void this.#leave());
  }

  #begin(): void {
    if (this.#listening !== undefined) return;
    const stopper = new AbortController();
    const { world } = this.#parts;
    const { name } = this.#account;
    world.log.info({ account: name }, "listening");
    const over = this.#account.listen(stopper.signal).then(
      () => {},
      (error: unknown) => world.log.error({ err: error, account: name }, "listening failed; it begins anew"),
    );
    const listening = { stopper, over };
    this.#listening = listening;
    void over.then(() => {
      if (this.#listening === listening) this.#listening = undefined;
    });
  }

  async #leave(): Promise<void> {
    this.#expiry?.cancel();
    const listening = this.#listening;
    listening?.stopper.abort(new Error(`${this.#account.name} is another process's to listen at`));
    await listening?.over;
  }
}
