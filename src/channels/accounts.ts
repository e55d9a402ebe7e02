// Owns who listens at a channel's accounts, such as one bot: one process of the deployment at a time.
// AC1: an account is listened at only while it is held; whoever loses it stops before anybody else can begin,
//      as long as it can reach its clock: a process that stood still finds out at its next beat.
// AC2: what its holder leaves, by a stop or by its death, the next one takes up.
// AC3: an account that can't be listened at is tried again after pauses that grow, and says why; nobody else
//      feels it.

import type { Commit } from "../engine/unit.ts";
import { hold, letGo } from "../store/holdings.ts";
import type { Timer, World } from "../world.ts";

/** How often a holding is asked for, or kept. */
const HOLD_MS = 1_000;

/** The first and the longest pause before an account that failed is tried again. */
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 5 * 60_000;
/** One that has worked this long begins with the shortest pause again. */
const STEADY_MS = 60_000;
const ERROR_CHARS_MAX = 300;
/** So many failures in a row, of some minutes, are no passing trouble. */
const STUBBORN_FAILURES = 8;

/** The name of an account in the whole deployment. */
export function accountName(channel: string, accountId: string): string {
  return `${channel}:${accountId}`;
}

/** One account of a channel, as far as only one process may listen at it. */
export interface Account {
  /** Unique in the deployment, like `telegram:default`. */
  readonly name: string;
  /** Listens until the signal fires. After a throw, or a return without cause, it begins anew. */
  listen(ear: Ear): Promise<void>;
}

/** What whoever listens is given. */
export interface Ear {
  /** Fires when it has to stop. */
  readonly signal: AbortSignal;
  /** Tells that it works: messages come in from now on. */
  ready(): void;
}

/** Thrown out of `listen`: words for an operator, which hold no secret. */
export class ListenProblem extends Error {
  /** Nothing but a change of settings, or at the platform, will mend it: it is tried again rarely. */
  readonly lasting: boolean;
  constructor(message: string, lasting = false) {
    super(message);
    this.lasting = lasting;
  }
}

/** How an account stands. `standby`: another process listens at it. */
export interface AccountStatus {
  readonly account: string;
  readonly state: "standby" | "connecting" | "ready" | "retrying";
  /** Since when, ms since 1970. */
  readonly since: number;
  readonly error?: string;
  readonly retryAt?: number;
}

interface AccountParts {
  readonly commit: Commit;
  readonly world: World;
  /** This process. */
  readonly owner: string;
  /** Until when nobody takes this process for dead, by the monotonic clock. */
  leaseUntil(): number;
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

  /** How each account stands in this process. */
  statuses(): AccountStatus[] {
    return this.#keepers.map((keeper) => keeper.status);
  }

  /** Stops listening, and leaves the accounts to others. */
  async stop(): Promise<void> {
    await Promise.all(this.#keepers.splice(0).map((keeper) => keeper.stop()));
  }
}

class Keeper {
  readonly #parts: AccountParts;
  readonly #account: Account;
  #listening: { readonly stopper: AbortController; readonly over: Promise<void> } | undefined;
  /** Until then nobody else may have it, by the monotonic clock. */
  #heldUntil = 0;
  #working: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #expiry: Timer | undefined;
  #stopped = false;
  #failures = 0;
  /** What was said of the last failure. */
  #said: { readonly level: string; readonly why: string } | undefined;
  #status: AccountStatus;

  constructor(parts: AccountParts, account: Account) {
    this.#parts = parts;
    this.#account = account;
    this.#status = { account: account.name, state: "standby", since: parts.world.clock.now() };
  }

  get status(): AccountStatus {
    return this.#status;
  }

  #stand(state: AccountStatus["state"], more: Pick<AccountStatus, "error" | "retryAt"> = {}): void {
    this.#status = { account: this.#account.name, state, since: this.#parts.world.clock.now(), ...more };
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
    const { commit, owner, world, leaseUntil } = this.#parts;
    const { clock } = world;
    try {
      const mine = await commit((unit) => hold(unit.tx, this.#account.name, owner, unit.now));
      if (mine) this.#heldUntil = leaseUntil();
      if (mine && !this.#stopped && this.#heldUntil > clock.monotonic()) this.#begin();
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
    if (this.#listening === undefined || this.#heldUntil === Number.POSITIVE_INFINITY) return;
    const leftMs = Math.max(0, this.#heldUntil - clock.monotonic());
    this.#expiry = clock.at(clock.now() + leftMs, () => void this.#leave());
  }

  #begin(): void {
    const { world } = this.#parts;
    const { retryAt } = this.#status;
    if (this.#listening !== undefined || (retryAt !== undefined && world.clock.now() < retryAt)) return;
    const stopper = new AbortController();
    const { signal } = stopper;
    let readyAt: number | undefined;
    const ready = (): void => {
      if (signal.aborted || readyAt !== undefined) return;
      readyAt = world.clock.now();
      this.#stand("ready");
      this.#said = undefined;
      world.log.info({ account: this.#account.name }, "listening");
    };
    this.#stand("connecting");
    const over = this.#account.listen({ signal, ready }).then(
      () => (signal.aborted ? undefined : this.#failed(new ListenProblem("the platform hung up"), readyAt)),
      (error: unknown) => this.#failed(error, readyAt),
    );
    const listening = { stopper, over };
    this.#listening = listening;
    void over.then(() => {
      if (this.#listening === listening) this.#listening = undefined;
    });
  }

  #failed(error: unknown, readyAt: number | undefined): void {
    const { world } = this.#parts;
    const { name: account } = this.#account;
    const now = world.clock.now();
    const steady = readyAt !== undefined && now - readyAt >= STEADY_MS;
    this.#failures = steady ? 1 : this.#failures + 1;
    const lasting = error instanceof ListenProblem && error.lasting;
    const grownMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(this.#failures - 1, 20));
    const pauseMs = (lasting ? RETRY_MAX_MS : grownMs) * (0.75 + world.random() / 2);
    const text = error instanceof Error ? error.message : String(error);
    this.#stand("retrying", {
      error: world.redactor.beginning(text, ERROR_CHARS_MAX).text,
      retryAt: now + Math.round(pauseMs),
    });
    // What is no ListenProblem was not expected: its stack is for whoever mends it.
    const isKnown = error instanceof ListenProblem;
    const fields = { account, retryInMs: Math.round(pauseMs), ...(isKnown ? { why: text } : { err: error }) };
    this.#say(isKnown && !lasting && this.#failures < STUBBORN_FAILURES ? "warn" : "error", text, fields);
  }

  /** An outage is told when it begins, when its reason is another one, and when somebody has to look. */
  #say(level: "warn" | "error", why: string, fields: object): void {
    const isNews = this.#said?.why !== why || this.#said.level !== level;
    this.#said = { level, why };
    this.#parts.world.log[isNews ? level : "debug"](fields, "listening failed; it is tried again");
  }

  async #leave(): Promise<void> {
    this.#expiry?.cancel();
    const listening = this.#listening;
    listening?.stopper.abort(new Error(`${this.#account.name} is another process's to listen at`));
    await listening?.over;
    if (this.#status.state !== "standby") this.#stand("standby");
  }
}
