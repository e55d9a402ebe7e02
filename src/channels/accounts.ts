// Decides which process listens to each channel account (one bot, for example). Only one process of the
// deployment listens to an account at a time.
// A process listens to an account only while it holds the account's lease. If it loses the lease, it stops
// before another process can begin. A process that was suspended notices when it continues that its lease has
// ended.
// AC2: when the holder of an account stops or dies, another process takes the account over.
// AC3: a failing account is retried after growing pauses, and its status shows the reason. Other accounts are
//      not affected.

import { grownPause } from "../core/backoff.ts";
import type { Commit } from "../engine/unit.ts";
import { hold, letGo } from "../store/queries/holdings.ts";
import type { Timer, World } from "../world.ts";

/** Interval at which a process tries to acquire or renews each lease. */
const HOLD_MS = 1_000;

/** First and longest pause before the retry of a failed account. */
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 5 * 60_000;
/** After an account has worked for this long, the pauses after failures start with the shortest one again. */
const STEADY_MS = 60_000;
const ERROR_CHARS_MAX = 300;
/**
 * Number of consecutive failures (in some minutes) after which the problem is logged as an error instead of a
 * warning.
 */
const STUBBORN_FAILURES = 8;

/** Returns the name of an account, unique in the deployment. */
export function accountName(channel: string, accountId: string): string {
  return `${channel}:${accountId}`;
}

/** An account of a channel. Only one process may listen to it. */
export interface Account {
  /** Unique in the deployment, like `telegram:default`. */
  readonly name: string;
  /**
   * Listens until `ear.signal` is aborted. If it throws or returns earlier, it is called again after a pause.
   */
  listen(ear: ListenPort): Promise<void>;
}

/** Passed to `listen` of an account. */
export interface ListenPort {
  /** Aborted when the listener must stop listening. */
  readonly signal: AbortSignal;
  /** Reports that the connection works, and messages are received from now on. */
  ready(): void;
}

/** Thrown by `listen`. The message is for an operator and must not contain secrets. */
export class ListenProblem extends Error {
  /**
   * True if retries fail until somebody changes the settings or the account at the platform. Retries then
   * have the longest pause.
   */
  readonly lasting: boolean;
  constructor(message: string, lasting = false) {
    super(message);
    this.lasting = lasting;
  }
}

/** Status of an account. `standby`: another process listens to the account. */
export interface AccountStatus {
  readonly account: string;
  readonly state: "standby" | "connecting" | "ready" | "retrying";
  /** Time at which this state began, in ms since 1970. */
  readonly since: number;
  readonly error?: string;
  readonly retryAt?: number;
}

interface AccountParts {
  readonly commit: Commit;
  readonly world: World;
  readonly owner: string;
  /** Returns the end of this process's lease, on the monotonic clock. */
  leaseUntil(): number;
}

/** Listens to each account while this process holds its lease. */
export class Accounts {
  readonly #parts: AccountParts;
  #keepers: readonly Keeper[] = [];

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  start(accounts: readonly Account[]): void {
    const added = accounts.map((account) => new Keeper(this.#parts, account));
    this.#keepers = [...this.#keepers, ...added];
    for (const keeper of added) keeper.look();
  }

  /** Returns the status of each account in this process. */
  statuses(): AccountStatus[] {
    return this.#keepers.map((keeper) => keeper.status);
  }

  /** Stops listening and releases these accounts. Default: all accounts. */
  async stop(which?: readonly Account[]): Promise<void> {
    const ends = this.#keepers.filter(({ account }) => which === undefined || which.includes(account));
    this.#keepers = this.#keepers.filter((keeper) => !ends.includes(keeper));
    await Promise.all(ends.map((keeper) => keeper.stop()));
  }
}

class Keeper {
  readonly account: Account;
  readonly #parts: AccountParts;
  #listening: { readonly stopper: AbortController; readonly over: Promise<void> } | undefined;
  /** Time on the monotonic clock at which this process's lease on the account ends. */
  #heldUntil = 0;
  #working: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #expiry: Timer | undefined;
  #stopped = false;
  #failures = 0;
  /** Time on the monotonic clock before which a failed account is not tried again. */
  #pausedUntil = 0;
  /** The failure that was logged last. */
  #said: { readonly level: string; readonly why: string } | undefined;
  #status: AccountStatus;

  constructor(parts: AccountParts, account: Account) {
    this.#parts = parts;
    this.account = account;
    this.#status = { account: account.name, state: "standby", since: parts.world.clock.now() };
  }

  get status(): AccountStatus {
    return this.#status;
  }

  #stand(state: AccountStatus["state"], more: Pick<AccountStatus, "error" | "retryAt"> = {}): void {
    this.#status = { account: this.account.name, state, since: this.#parts.world.clock.now(), ...more };
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
    const { name } = this.account;
    await commit((unit) => letGo(unit.tx, name, owner)).catch((error: unknown) =>
      world.log.warn(
        { err: error, account: name },
        "an account's lease could not be released; it expires soon",
      ),
    );
  }

  async #look(): Promise<void> {
    const { commit, owner, world, leaseUntil } = this.#parts;
    const { clock } = world;
    // Read before the commit: after a late answer, another process may have the account.
    const leaseEnd = leaseUntil();
    try {
      const mine = await commit((unit) => hold(unit.tx, this.account.name, owner, unit.now));
      if (mine) this.#heldUntil = leaseEnd;
      if (mine && !this.#stopped && this.#heldUntil > clock.monotonic()) this.#begin();
      else await this.#leave();
    } catch (error) {
      world.log.warn({ err: error, account: this.account.name }, "an account's lease could not be acquired");
    }
    this.#watchExpiry();
    if (!this.#stopped) this.#timer = clock.after(HOLD_MS, () => this.look());
  }

  /** Sets a timer that stops listening when the lease ends, because then another process may begin. */
  #watchExpiry(): void {
    const { clock } = this.#parts.world;
    this.#expiry?.cancel();
    if (this.#listening === undefined || this.#heldUntil === Number.POSITIVE_INFINITY) return;
    const leftMs = Math.max(0, this.#heldUntil - clock.monotonic());
    this.#expiry = clock.after(leftMs, () => void this.#leave());
  }

  #begin(): void {
    const { world } = this.#parts;
    // The wall clock can be set back, and a pause must not become longer then.
    const isPaused = this.#status.state === "retrying" && world.clock.monotonic() < this.#pausedUntil;
    if (this.#listening !== undefined || isPaused) return;
    const stopper = new AbortController();
    const { signal } = stopper;
    let readyAt: number | undefined;
    const ready = (): void => {
      if (signal.aborted || readyAt !== undefined) return;
      readyAt = world.clock.monotonic();
      this.#stand("ready");
      this.#said = undefined;
      world.log.info({ account: this.account.name }, "listening");
    };
    this.#stand("connecting");
    const over = this.account.listen({ signal, ready }).then(
      () =>
        signal.aborted
          ? undefined
          : this.#handleFailure(new ListenProblem("the platform closed the connection"), readyAt),
      (error: unknown) => this.#handleFailure(error, readyAt),
    );
    const listening = { stopper, over };
    this.#listening = listening;
    void over.then(() => {
      if (this.#listening === listening) this.#listening = undefined;
    });
  }

  /** `readyAt`: time on the monotonic clock since which the account worked. */
  #handleFailure(error: unknown, readyAt: number | undefined): void {
    const { world } = this.#parts;
    const { name: account } = this.account;
    const now = world.clock.monotonic();
    const steady = readyAt !== undefined && now - readyAt >= STEADY_MS;
    this.#failures = steady ? 1 : this.#failures + 1;
    const lasting = error instanceof ListenProblem && error.lasting;
    const grownMs = grownPause(RETRY_MIN_MS, RETRY_MAX_MS, this.#failures - 1);
    const pauseMs = Math.round((lasting ? RETRY_MAX_MS : grownMs) * (0.75 + world.random() / 2));
    this.#pausedUntil = now + pauseMs;
    const text = error instanceof Error ? error.message : String(error);
    this.#stand("retrying", {
      error: world.redactor.beginning(text, ERROR_CHARS_MAX).text,
      retryAt: world.clock.now() + pauseMs,
    });
    // An error of another class is a bug, so it is logged with its stack.
    const isKnown = error instanceof ListenProblem;
    const fields = { account, retryInMs: pauseMs, ...(isKnown ? { why: text } : { err: error }) };
    // The same failure again is logged only for debugging.
    const level = isKnown && !lasting && this.#failures < STUBBORN_FAILURES ? "warn" : "error";
    const isNews = this.#said?.why !== text || this.#said.level !== level;
    this.#said = { level, why: text };
    this.#parts.world.log[isNews ? level : "debug"](fields, "listening failed; Parley will retry");
  }

  async #leave(): Promise<void> {
    this.#expiry?.cancel();
    const listening = this.#listening;
    listening?.stopper.abort(new Error(`${this.account.name} is now held by another process`));
    await listening?.over;
    if (this.#status.state !== "standby") this.#stand("standby");
  }
}
