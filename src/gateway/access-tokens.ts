// Owns the use of access tokens: finds their rows, records their last use, and closes connections whose token
// was revoked or narrowed, has expired, or lost the token that it was derived from.
// AT1: a connection at another gateway of the store is closed at that gateway's next tick.

import { CLOSE } from "../contract/protocol.ts";
import type { Engine } from "../engine/engine.ts";
import {
  type AccessTokenRow,
  getAccessToken,
  listAccessTokens,
  noteAccessTokenUse,
} from "../store/queries/access-tokens.ts";
import type { Authority, Caller } from "./auth.ts";
import type { Member } from "./socket/connection.ts";

/** The last use is stored at most this often. */
const USE_NOTED_EVERY_MS = 60_000;
const CHANGED = "the access token was revoked or changed, or it has expired";

/** Finds an access token that somebody uses, and records the use. */
export async function useAccessToken(
  engine: Pick<Engine, "store" | "commit" | "now">,
  id: string,
): Promise<AccessTokenRow | undefined> {
  const row = await getAccessToken(engine.store.db, id);
  const now = engine.now();
  if (row !== undefined && now - (row.usedAt ?? 0) >= USE_NOTED_EVERY_MS)
    await engine.commit((unit) => noteAccessTokenUse(unit.tx, id, now));
  return row;
}

/** Whether the caller still has the rights with which it connected. */
function isCurrent(authority: Authority, caller: Caller, row: AccessTokenRow | undefined): boolean {
  const rights = row === undefined ? undefined : authority.accessRights(row);
  if (rights === undefined) return false;
  // A client may have asked for fewer scopes.
  const keepsScopes = caller.scopes.every((scope) => rights.scopes.includes(scope));
  return keepsScopes && JSON.stringify(caller.patterns) === JSON.stringify(rights.patterns);
}

/** The connections that access tokens opened. */
export class AccessTokenUsers {
  readonly #members = new Set<Member>();
  readonly #engine: Pick<Engine, "store" | "now">;
  readonly #authority: Authority;

  constructor(engine: Pick<Engine, "store" | "now">, authority: Authority) {
    this.#engine = engine;
    this.#authority = authority;
  }

  join(member: Member): () => void {
    if (member.caller.accessToken !== undefined) this.#members.add(member);
    return () => this.#members.delete(member);
  }

  /** Closes the connections of one token. */
  end(id: string): void {
    for (const { caller, close } of this.#members) {
      if (caller.accessToken === id) close(CLOSE.policy, CHANGED);
    }
  }

  /** Closes connections whose rights have changed elsewhere, or that have expired (AT1). */
  async check(): Promise<void> {
    if (this.#members.size === 0) return;
    const rows = await listAccessTokens(this.#engine.store.db, this.#engine.now());
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const { caller, close } of this.#members) {
      const row = byId.get(caller.accessToken ?? "");
      if (!isCurrent(this.#authority, caller, row)) close(CLOSE.policy, CHANGED);
    }
  }
}
