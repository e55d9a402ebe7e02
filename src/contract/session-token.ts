// Owns session tokens: the owner of an operator's token can derive the token of one session from it, without
// asking the gateway.
// ST1: a session token is valid only at `/mcp`. It becomes invalid when it expires, when its series is
//      revoked, or when the operator's token becomes invalid.
// ST2: its holder acts as that session only, with the session's rights, limited by those of the operator's
//      token.

import { createHmac } from "node:crypto";
import { isObject, jsonOf } from "../core/json.ts";

const PREFIX = "pst2";
/** Lifetime of a joined window's token. Each start of the window, and each of its hooks, extends it. */
export const SESSION_TOKEN_MS = 90 * 24 * 60 * 60 * 1_000;

/** The content of a session's token. */
export interface SessionGrant {
  readonly sessionKey: string;
  /** Tokens of one series are revoked together. */
  readonly series: string;
  /** Time at which the token expires (ms since 1970). */
  readonly until: number;
}

const seal = (body: string, parent: string): string =>
  createHmac("sha256", parent).update(`session:${body}`).digest("base64url");

/** Derives the token of a session from an operator's token. */
export function sessionToken(parent: string, { sessionKey, series, until }: SessionGrant): string {
  const body = Buffer.from(JSON.stringify({ sessionKey, series, until })).toString("base64url");
  return `${PREFIX}.${body}.${seal(body, parent)}`;
}

/** A parsed session token whose seal is not verified yet. */
export interface SessionClaim {
  readonly grant: SessionGrant;
  readonly seal: string;
  /** Returns the seal that the token must have if it was derived from `parent`. */
  sealBy(parent: string): string;
}

/** Parses the token of a session. Returns undefined for any other kind of token. */
export function readSessionToken(token: string): SessionClaim | undefined {
  const [prefix, body, mark, ...rest] = token.split(".");
  if (prefix !== PREFIX || body === undefined || mark === undefined || rest.length > 0) return undefined;
  const grant = jsonOf(Buffer.from(body, "base64url").toString("utf8"));
  if (!isObject(grant) || typeof grant.sessionKey !== "string" || typeof grant.series !== "string") return;
  if (typeof grant.until !== "number") return undefined;
  const { sessionKey, series, until } = grant;
  return { grant: { sessionKey, series, until }, seal: mark, sealBy: (parent) => seal(body, parent) };
}
