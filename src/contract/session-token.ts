// Owns the token of one session: the owner of an operator's token makes it without the gateway.
// ST1: the gateway accepts it only while the token that it was made from is valid, and only at `/mcp`.
// ST2: its holder is that session and no other, with that session's rights within those of the first token.

import { createHmac } from "node:crypto";

const PREFIX = "pst1";

const seal = (body: string, parent: string): string =>
  createHmac("sha256", parent).update(`session:${body}`).digest("base64url");

/** Makes the token of a session from an operator's token. */
export function sessionToken(parent: string, sessionKey: string): string {
  const body = Buffer.from(sessionKey).toString("base64url");
  return `${PREFIX}.${body}.${seal(body, parent)}`;
}

/** A token of a session before its seal was compared. */
export interface SessionClaim {
  readonly sessionKey: string;
  readonly seal: string;
  /** Returns the seal that the token would have if it was made from this token. */
  sealBy(parent: string): string;
}

/** Reads a token of a session; undefined: it is another kind of token. */
export function readSessionToken(token: string): SessionClaim | undefined {
  const [prefix, body, mark, ...rest] = token.split(".");
  if (prefix !== PREFIX || body === undefined || mark === undefined || rest.length > 0) return undefined;
  const sessionKey = Buffer.from(body, "base64url").toString("utf8");
  return { sessionKey, seal: mark, sealBy: (parent) => seal(body, parent) };
}
