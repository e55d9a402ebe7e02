// Owns the table of access tokens, which operators create for programs and people. A row stores the rights of
// a token, and nothing from which the token could be computed. If its row is missing, an access token is
// invalid.

import type { Selectable } from "kysely";
import type { TokenScope } from "../../core/shapes/settings/settings.ts";
import { held } from "../locks.ts";
import type { AccessTokenTable } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";

/** The sign-in of an MCP client, by which it got its token (`gateway/oauth`). */
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

export interface AccessTokenRow {
  readonly id: string;
  /** `tokenId` of the gateway token from which it was derived. */
  readonly tokenId: string;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  /** Session key patterns. Absent: every session. */
  readonly patterns?: readonly string[];
  readonly createdAt: number;
  /** Absent before the first use. */
  readonly usedAt?: number;
  readonly expiresAt: number;
  /** Absent if an operator created the token. */
  readonly signIn?: SignIn;
}

function toRow(row: Selectable<AccessTokenTable>): AccessTokenRow {
  const patterns = row.patterns_json === null ? {} : { patterns: JSON.parse(row.patterns_json) as string[] };
  return {
    id: row.id,
    tokenId: row.token_id,
    name: row.name,
    scopes: JSON.parse(row.scopes_json) as TokenScope[],
    ...patterns,
    createdAt: row.created_at,
    ...(row.used_at === null ? {} : { usedAt: row.used_at }),
    expiresAt: row.expires_at,
    ...(row.sign_in_json === null ? {} : { signIn: JSON.parse(row.sign_in_json) as SignIn }),
  };
}

const rightsOf = ({ scopes, patterns }: Pick<AccessTokenRow, "scopes" | "patterns">) => ({
  scopes_json: JSON.stringify(scopes),
  patterns_json: patterns === undefined ? null : JSON.stringify(patterns),
});

export async function addAccessToken(tx: Tx, row: AccessTokenRow): Promise<void> {
  const { id, tokenId, name, createdAt, expiresAt, signIn } = row;
  const sign_in_json = signIn === undefined ? null : JSON.stringify(signIn);
  const values = { id, token_id: tokenId, name, created_at: createdAt, expires_at: expiresAt };
  await tx
    .insertInto("access_tokens")
    .values({ ...values, ...rightsOf(row), used_at: null, sign_in_json })
    .execute();
}

export async function getAccessToken(db: Db, id: string): Promise<AccessTokenRow | undefined> {
  const row = await db.selectFrom("access_tokens").selectAll().where("id", "=", id).executeTakeFirst();
  return row === undefined ? undefined : toRow(row);
}

/** Reads a token, and locks its row until the transaction ends. */
export async function holdAccessToken(tx: Tx, id: string): Promise<AccessTokenRow | undefined> {
  const query = tx.selectFrom("access_tokens").selectAll().where("id", "=", id);
  const row = await held(tx, query).executeTakeFirst();
  return row === undefined ? undefined : toRow(row);
}

/** Lists all access tokens that have not expired, the newest first. */
export async function listAccessTokens(db: Db, nowMs: number): Promise<AccessTokenRow[]> {
  const query = db.selectFrom("access_tokens").selectAll().where("expires_at", ">", nowMs);
  return (await query.orderBy("created_at", "desc").orderBy("id").execute()).map(toRow);
}

export async function setAccessTokenRights(
  tx: Tx,
  id: string,
  rights: Pick<AccessTokenRow, "scopes" | "patterns">,
): Promise<void> {
  await tx.updateTable("access_tokens").set(rightsOf(rights)).where("id", "=", id).execute();
}

/** Stores the next step of a sign-in, which extends the life of its token. */
export async function setSignIn(tx: Tx, id: string, signIn: SignIn, expiresAt: number): Promise<void> {
  const changed = { sign_in_json: JSON.stringify(signIn), expires_at: expiresAt };
  await tx.updateTable("access_tokens").set(changed).where("id", "=", id).execute();
}

export async function noteAccessTokenUse(tx: Tx, id: string, usedAt: number): Promise<void> {
  await tx.updateTable("access_tokens").set({ used_at: usedAt }).where("id", "=", id).execute();
}

export async function deleteAccessToken(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom("access_tokens").where("id", "=", id).execute();
}

export async function dropExpiredAccessTokens(tx: Tx, nowMs: number): Promise<void> {
  await tx.deleteFrom("access_tokens").where("expires_at", "<=", nowMs).execute();
}
