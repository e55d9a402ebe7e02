// Owns the token of one session. The owner of an operator's token derives it without the gateway.
// ST1: the gateway accepts it only at `/mcp`, and only while the operator's token is valid.
// ST2: its holder acts as that session only, with the session's rights, limited to the rights of the
//      operator's token.

import { createHmac } from "node:crypto";

const PREFIX = "pst1";

const seal = (body: string, parent: string): string =>
  createHmac("sha256", parent).update(`session:${body}`).digest("base64url");

/** Derives the token of a session from an operator's token. */
export function sessionToken(parent: string, sessionKey: string): string {
  const body = Buffer.from(sessionKey).toString("base64url");
  return `${PREFIX}.${body}.${seal(body, parent)}`;
}

/** A parsed session token whose seal is not verified yet. */
export interface SessionClaim {
  readonly sessionKey: string;
  readonly seal: string;
  /** Returns the seal that the token must have if it was derived from `parent`. */
  sealBy(parent: string): string;
}

/** Parses the token of a session. Returns undefined for any other kind of token. */
export function readSessionToken(token: string): SessionClaim | undefined {
  const [prefix, body, mark, ...rest] = token.split(".");
  if (prefix !== PREFIX || body === undefined || mark === undefined || rest.length > 0) return undefined;
  const sessionKey = Buffer.from(body, "base64url").toString("utf8");
  return { sessionKey, seal: mark, sealBy: (parent) => seal(body, parent) };
}
