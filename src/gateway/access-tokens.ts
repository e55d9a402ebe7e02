// Owns the use of access tokens: finds their rows and records their last use. Closes connections and HTTP
// requests whose token was revoked or narrowed, has expired, or was derived from a token that was removed.
// AT1: the other gateways of the same store close their own connections and requests with this token at their
// next tick.

import { CLOSE } from "../contract/protocol.ts";
import type { Engine } from "../engine/engine.ts";
import {
  type AccessTokenRow,
  getAccessToken,
  listAccessTokens,
  noteAccessTokenUse,
} from "../store/queries/access-tokens.ts";
import type { AccessTokenRows, Authority, Caller } from "./auth.ts";
import type { Member } from "./socket/connection.ts";

/** The time of the last use is stored at most once in this interval. */
const USE_NOTED_EVERY_MS = 60_000;
const CHANGED = "the access token was revoked or changed, or it has expired";

/** A connection or an HTTP request. */
type User = Pick<Member, "caller" | "close">;

/** Finds access tokens and records their use. Callers neither wait for the recording nor get its errors. */
export function accessTokenRows(engine: Pick<Engine, "store" | "commit" | "now" | "log">): AccessTokenRows {
  /** Ids of the tokens whose use is being stored. */
  const noting = new Set<string>();
  return {
    find: (id) => getAccessToken(engine.store.db, id),
    used({ id, usedAt = 0 }) {
      const now = engine.now();
      if (now - usedAt < USE_NOTED_EVERY_MS || noting.has(id)) return;
      noting.add(id);
      engine
        .commit((unit) => noteAccessTokenUse(unit.tx, id, now))
        .catch((error: unknown) =>
          engine.log.warn({ err: error }, "could not store the use of an access token"),
        )
        .finally(() => noting.delete(id));
    },
  };
}

/** Returns true if the caller still has the rights with which it connected. */
function isCurrent(authority: Authority, caller: Caller, row: AccessTokenRow | undefined): boolean {
  const rights = row === undefined ? undefined : authority.accessRights(row);
  if (rights === undefined) return false;
  // Compares only the caller's scopes, because a client may have requested fewer than the token has.
  const keepsScopes = caller.scopes.every((scope) => rights.scopes.includes(scope));
  return keepsScopes && JSON.stringify(caller.patterns) === JSON.stringify(rights.patterns);
}

/** The connections and HTTP requests that use access tokens. */
export class AccessTokenUsers {
  readonly #users = new Set<User>();
  readonly #engine: Pick<Engine, "store" | "now" | "log">;
  readonly #authority: Authority;

  constructor(engine: Pick<Engine, "store" | "now" | "log">, authority: Authority) {
    this.#engine = engine;
    this.#authority = authority;
  }

  join(user: User): () => void {
    const { accessToken } = user.caller;
    if (accessToken !== undefined) {
      this.#users.add(user);
      void this.#look(user, accessToken);
    }
    return () => this.#users.delete(user);
  }

  /** Closes the connections and HTTP requests that use this token. */
  end(id: string): void {
    for (const { caller, close } of this.#users) {
      if (caller.accessToken === id) close(CLOSE.policy, CHANGED);
    }
  }

  /** Closes connections and requests whose token has expired, or was changed by another gateway (AT1). */
  async check(): Promise<void> {
    // Copy the list before the read: the result may not contain the token of a user that joins during the
    // read.
    const users = [...this.#users];
    if (users.length === 0) return;
    const rows = await listAccessTokens(this.#engine.store.db, this.#engine.now());
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const user of users) this.#judge(user, byId.get(user.caller.accessToken ?? ""));
  }

  /** Checks the token again, because it may have been revoked or narrowed since the authentication. */
  async #look(user: User, id: string): Promise<void> {
    try {
      this.#judge(user, await getAccessToken(this.#engine.store.db, id));
    } catch (error) {
      this.#engine.log.warn(
        { err: error },
        "could not check an access token again; the next tick repeats the check",
      );
    }
  }

  #judge(user: User, row: AccessTokenRow | undefined): void {
    const { until = Number.POSITIVE_INFINITY } = user.caller;
    const isOver = this.#engine.now() >= until || !isCurrent(this.#authority, user.caller, row);
    if (this.#users.has(user) && isOver) user.close(CLOSE.policy, CHANGED);
  }
}
