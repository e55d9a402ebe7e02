// Owns the table of access tokens, which operators create for programs and people. A row stores the rights of
// a token, and nothing from which the token could be computed. If its row is missing, an access token is
// invalid.

import type { TokenScope } from "../../core/shapes/settings/settings.ts";
import { type RecordOf, recordsOf } from "../records.ts";
import type { Db, Tx } from "../sql.ts";

/** The sign-in of an MCP client, by which it got its token (the feature `mcp-server`). */
export interface SignIn {
  readonly clientId: string;
  readonly redirectUri: string;
  /** The code challenge of PKCE, method S256. */
  readonly challenge: string;
  /** Number of times that the client got tokens. 0: its code was not used yet. */
  readonly generation: number;
  /** Time of the last one. Absent before the first. */
  readonly issuedAt?: number;
}

interface Rights {
  readonly scopes: readonly TokenScope[];
  /** Session key patterns. Absent: every session. */
  readonly patterns?: readonly string[];
}

/** `signIn`: absent if an operator created the token. */
export type AccessTokenRow = RecordOf<"access_tokens", Rights & { readonly signIn?: SignIn }>;

const TOKENS = recordsOf<AccessTokenRow>()("access_tokens", {
  key: ["id"],
  columns: [
    "token_id",
    "name",
    "scopes_json",
    "patterns_json",
    "created_at",
    "used_at",
    "expires_at",
    "sign_in_json",
  ],
});

export const addAccessToken = (tx: Tx, row: AccessTokenRow) => TOKENS.insert(tx, row);

export const getAccessToken = (db: Db, id: string) => TOKENS.find(db, { id });

/** Reads a token, and locks its row until the transaction ends. */
export const holdAccessToken = (tx: Tx, id: string) => TOKENS.hold(tx, { id });

/** Lists all access tokens that have not expired, the newest first. */
export const listAccessTokens = (db: Db, nowMs: number) =>
  TOKENS.all(TOKENS.rows(db).where("expires_at", ">", nowMs).orderBy("created_at", "desc").orderBy("id"));

export const setAccessTokenRights = (tx: Tx, id: string, { scopes, patterns }: Rights) =>
  TOKENS.change(tx, { id }, { scopes, patterns: patterns ?? null });

/** Stores the next step of a sign-in, which extends the life of its token. */
export const setSignIn = (tx: Tx, id: string, signIn: SignIn, expiresAt: number) =>
  TOKENS.change(tx, { id }, { signIn, expiresAt });

export const noteAccessTokenUse = (tx: Tx, id: string, usedAt: number) =>
  TOKENS.change(tx, { id }, { usedAt });

export const deleteAccessToken = (tx: Tx, id: string) => TOKENS.remove(tx, { id });

export async function dropExpiredAccessTokens(tx: Tx, nowMs: number): Promise<void> {
  await tx.deleteFrom("access_tokens").where("expires_at", "<=", nowMs).execute();
}
