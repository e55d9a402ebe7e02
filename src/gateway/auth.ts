// Owns authentication: tokens and their rights, the rate limit on wrong tokens, device tokens, the generated
// token.
// A given token is compared with every configured token in constant time. Loopback connections need a token,
// too. A caller never has more rights than its token: a client's request can only narrow them.
// An address that sent too many wrong tokens has to wait, but a right token is always admitted: a token is
// too long to be guessed, and others may share the address.
// A device token is valid for 90 days, if its parent token still exists, and only together with the device's
// signature over the connection's challenge. A device token therefore cannot be used over HTTP.
// AU5: a session's pass gives access to that session's tools only; it creates no device tokens. A token of an
//      external session (`contract/session-token.ts`) is valid for MCP requests of that session only;
//      `mcp/client.ts` refuses it once its series (all tokens of one joined window) was revoked.
// AU6: an access token, which an operator created, has the rights in its row, within the current rights of
//      the token that it was derived from. It cannot create tokens, jobs or nodes, because these could
//      outlive it.
// AU7: a token that an MCP client got by signing in (`oauth/`) is an access token that is valid for requests
//      to /mcp only, for an hour. Its text is signed with the token of the person who consented.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TokenRights } from "../access/token.ts";
import { TOKEN_FILE } from "../contract/protocol.ts";
import { readSessionToken, type SessionGrant } from "../contract/session-token.ts";
import { isObject } from "../core/json.ts";
import { type AdminPart, adminParts, expandScopes, limitedTo, SCOPES } from "../core/rules/scopes.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Settings, TokenSettings } from "../core/shapes/settings/settings.ts";
import { asStoreProblem, StoreProblem } from "../store/problems.ts";
import type { AccessTokenRow } from "../store/queries/access-tokens.ts";
import { tokenId } from "../triggers/creator.ts";
import { ensureFolder } from "../world/folders.ts";
import type { Clock, World } from "../world.ts";
import { createAllowance } from "./allowance.ts";
import { ACCESS, readSealed } from "./sealed.ts";

/** The authenticated party behind a connection or an HTTP request. */
export interface Caller extends TokenRights {
  /** Parts of `operator.admin` that this connection requested, in addition to its scopes. */
  readonly parts?: readonly AdminPart[];
  /** A hash of the token: the same for a device token and its parent token. */
  readonly id: string;
  /**
   * Set for the program of an ACP agent, which authenticates with a pass (a temporary token): the only
   * session whose tools it may call. A pass gives no other rights.
   */
  readonly actsAs?: string;
  /** Set for the token of an external session: the caller may make MCP requests as this session only. */
  readonly onlyAs?: Pick<SessionGrant, "sessionKey" | "series">;
  /** Id of the access token, if the caller uses one. */
  readonly accessToken?: string;
  /** Time at which the caller's token expires, if it is that of a signed-in MCP client. */
  readonly until?: number;
  /** The device that signed this connection's challenge. */
  readonly deviceId?: string;
  /** The paired device, if this connection is a node's. */
  readonly nodeId?: string;
  /**
   * Set for a peer. It asks agents over A2A, and has no other rights: only the A2A path admits it.
   * `exposes`: the agents that it may see.
   */
  readonly peer?: { readonly name: string; readonly exposes: readonly string[] };
  /** The device token that opened this connection. */
  readonly device?: { readonly deviceId: string; readonly role: Caller["role"]; readonly series: string };
}

/**
 * Returns the owner of a caller's idempotency keys: the caller's device together with this token, or the
 * token alone if there is no device.
 */
export function keyOwnerOf({ id, deviceId }: Pick<Caller, "id" | "deviceId">): string {
  return deviceId === undefined ? id : `${id}:${deviceId}`;
}

export interface Claim {
  readonly token?: string | undefined;
  /** True for a request to /mcp, where tokens of signed-in MCP clients are valid (AU7). */
  readonly forMcp?: boolean | undefined;
  readonly role?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  /** The id of the device that signed this connection's challenge, or undefined if no device signed it. */
  device?(): Result<string | undefined>;
}

export interface Authority {
  /** Authenticates a caller. `remote`: the address that wrong tokens are counted against. */
  admit(remote: string, claim: Claim): Promise<Result<Caller>>;
  /**
   * Creates a token for this device with these rights. Returns undefined if the caller's token was removed.
   */
  deviceToken(
    caller: Caller,
    given: { readonly deviceId: string; readonly series: string; readonly until: number },
  ): string | undefined;
  /**
   * Derives an access token from the caller's token. Returns undefined if the caller may not create access
   * tokens (AU6).
   */
  accessToken(caller: Caller, id: string): string | undefined;
  /**
   * Signs a text of a sign-in with the operator token that has this id. Returns undefined if that token was
   * removed. Never give a signature to a stranger, who could guess a weak token with it.
   */
  sign(text: string, tokenId: string): string | undefined;
  /** Returns the current rights of an access token, or undefined if its parent token was removed. */
  accessRights(row: AccessTokenRow): TokenRights | undefined;
}

/** Limits for wrong tokens: an address may send `max` of them, and then one more every `everyMs`. */
const GUESSES = { max: 10, everyMs: 6_000, usersMax: 10_000 };
const DEVICE_TOKEN_PREFIX = "pdt1";
const ACCESS_TOKEN_PREFIX = "pat1";
/** Lifetime of a device token. Each connection gives the device a new one. */
export const DEVICE_TOKEN_MS = 90 * 24 * 60 * 60 * 1_000;
export const CONNECT_ANEW = "Connect with the gateway's token and the device's signature to get a new one.";
const SIGN_IN = "Sign in again in the program that sent the token.";
const NEW_TOKEN = "Ask an operator for a new one: Operations, Tokens on the gateway's page.";
export const JOIN_AGAIN = "Join again in the project's folder: npx parley-gateway join PROGRAM";
const WHICH_TOKEN = `Use gateway.auth.token, or the token in the file ${TOKEN_FILE} of the store directory.`;
/** Matches a usable token in a file. The generated token is much longer. */
const TOKEN_IN_FILE = /^[^\p{Cc}\p{Cs}\uFFFD]{8,}$/u;

/** Returns the gateway's own token and those of the configuration, each with its setting. */
export function tokensOf({ gateway }: Settings, token: string): (TokenSettings & { setting: string })[] {
  const setting = gateway.token === undefined ? "generated" : "gateway.auth.token";
  const main = { token, role: "operator", scopes: ["operator.admin"], setting } as const;
  const others = gateway.tokens.map((one, at) => ({ ...one, setting: `gateway.auth.tokens[${at}]` }));
  return [main, ...others];
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Returns whether two tokens are equal, compared in constant time. */
export function isSameToken(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

/** Limits the number of wrong tokens that an address may send. */
export function createGuessLimit(clock: Clock) {
  const allowance = createAllowance(clock, GUESSES);
  return {
    /** Refuses an address that has sent too many wrong tokens. */
    check(remote: string): Result<void> {
      const retryAfterMs = allowance.waitMs(remote);
      if (retryAfterMs === 0) return ok(undefined);
      return fail("rate_limited", "too many wrong tokens from this address; wait and try again", {
        details: { retryAfterMs },
      });
    },
    note: (remote: string): void => allowance.take(remote),
  };
}

/** Returns the rights of an external session's token: the rights of the token that it was made from. */
function sessionRights(
  tokens: readonly TokenSettings[],
  given: string,
  now: number,
): Result<Caller> | undefined {
  const claim = readSessionToken(given);
  if (claim === undefined) return undefined;
  const parent = tokens.find(({ token }) => isSameToken(claim.sealBy(token), claim.seal));
  if (parent === undefined || parent.role === "node") return undefined;
  const { sessionKey, series, until } = claim.grant;
  if (now >= until)
    return fail("unauthorized", "the token of this session has expired", { hint: JOIN_AGAIN });
  return ok({ ...callerOf(parent), id: tokenId(given), onlyAs: { sessionKey, series } });
}

interface DeviceGrant {
  readonly device: string;
  readonly role: "operator" | "node";
  readonly scopes: readonly string[];
  /** Id of the device's row in the store. A revoked token has no row. */
  readonly series: string;
  /** Time at which the token expires, in ms since 1970. */
  readonly until: number;
  /** `tokenId` of the parent token. */
  readonly of: string;
}

/** The content of an access token, whose signature is genuine. */
interface SealedToken {
  readonly id: string;
  /** Id of the token that signed it. */
  readonly sealedBy: string;
  /** The caller's id. */
  readonly caller: string;
  /** Time at which the token of a signed-in MCP client expires. Absent for tokens that operators created. */
  readonly until?: number;
}

function seal(grant: string, key: string): string {
  return createHmac("sha256", key).update(`device:${grant}`).digest("base64url");
}

function accessSeal(id: string, parent: string): string {
  return createHmac("sha256", parent).update(`access:${id}`).digest("base64url");
}

/**
 * Returns the id in an access token, and the id of the token that signed it. Returns undefined if none of
 * `tokens` signed it.
 */
function readAccessToken(tokens: readonly TokenSettings[], given: string): SealedToken | undefined {
  const [prefix, id, mark, ...rest] = given.split(".");
  if (prefix !== ACCESS_TOKEN_PREFIX || id === undefined || mark === undefined || rest.length > 0) return;
  const parent = tokens.find(({ token }) => isSameToken(accessSeal(id, token), mark));
  return parent === undefined ? undefined : { id, sealedBy: tokenId(parent.token), caller: tokenId(given) };
}

function signInSeal(text: string, key: string): string {
  return createHmac("sha256", key).update(`sign-in:${text}`).digest("base64url");
}

/** Reads the token of a signed-in MCP client. Returns undefined if none of `tokens` signed it. */
function readSignedIn(tokens: readonly TokenSettings[], given: string): SealedToken | undefined {
  const read = readSealed(ACCESS, given);
  const parent = tokens.find(({ token }) => read && isSameToken(signInSeal(read.text, token), read.mark));
  if (read === undefined || parent === undefined) return undefined;
  // The client gets a new token each hour, and stays the same caller.
  const caller = tokenId(`sign-in:${read.id}`);
  return { id: read.id, sealedBy: tokenId(parent.token), until: read.number, caller };
}

function readGrant(token: string): { grant: DeviceGrant; body: string; mark: string } | undefined {
  const [prefix, body, mark, ...rest] = token.split(".");
  if (prefix !== DEVICE_TOKEN_PREFIX || body === undefined || mark === undefined || rest.length > 0) return;
  try {
    const grant: unknown = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
    if (!isObject(grant) || typeof grant.of !== "string" || !Array.isArray(grant.scopes)) return;
    if (typeof grant.device !== "string" || typeof grant.series !== "string") return;
    if (typeof grant.until !== "number") return;
    if (grant.role !== "operator" && grant.role !== "node") return;
    return { grant: grant as unknown as DeviceGrant, body, mark };
  } catch {
    return;
  }
}

/** Returns the rights of a token, before the client's request narrows them. */
function rightsOf(tokens: readonly TokenSettings[], given: string): Caller | undefined {
  const hash = digest(given);
  let found: Caller | undefined;
  for (const known of tokens) {
    // Compares every token, so that the duration does not reveal which token is similar.
    if (timingSafeEqual(hash, digest(known.token))) found ??= callerOf(known);
  }
  return found;
}

function callerOf(known: TokenSettings): Caller {
  const scopes = known.role === "node" ? [] : expandScopes(known.scopes);
  const patterns = known.sessions === undefined ? {} : { patterns: known.sessions };
  return { id: tokenId(known.token), role: known.role, scopes, ...patterns };
}

/**
 * Returns the rights of a device token. Returns undefined if the token is invalid, or if its parent token was
 * removed.
 */
function deviceRights(
  tokens: readonly TokenSettings[],
  given: string,
): { caller: Caller; grant: DeviceGrant } | undefined {
  const read = readGrant(given);
  const parent = tokens.find((known) => tokenId(known.token) === read?.grant.of);
  if (read === undefined || parent === undefined) return undefined;
  if (!timingSafeEqual(digest(seal(read.body, parent.token)), digest(read.mark))) return undefined;
  const caller = callerOf(parent);
  const scopes = expandScopes(read.grant.scopes).filter((scope) => caller.scopes.includes(scope));
  return { caller: { ...caller, role: read.grant.role, scopes }, grant: read.grant };
}

/** Returns the rights of a device token, if the token has not expired and is presented by its own device. */
function admitDevice(
  { caller, grant }: { caller: Caller; grant: DeviceGrant },
  claim: Claim,
  now: number,
): Result<Caller> {
  if (now >= grant.until) {
    return fail("unauthorized", "the device token has expired", { hint: CONNECT_ANEW });
  }
  const proven = claim.device?.() ?? ok(undefined);
  if (!proven.ok) return proven;
  if (proven.value === grant.device) {
    const device = { deviceId: grant.device, role: grant.role, series: grant.series };
    return narrow({ ...caller, device }, claim);
  }
  const error =
    proven.value === undefined
      ? "a device token needs its device's signature over the challenge of this connection"
      : "the device token belongs to another device";
  return fail("unauthorized", error, { hint: CONNECT_ANEW });
}

function narrow(caller: Caller, claim: Claim): Result<Caller> {
  const role = claim.role ?? caller.role;
  if (role !== "operator" && role !== "node") {
    return fail("invalid_argument", `role must be "operator" or "node", got ${JSON.stringify(role)}`);
  }
  if (role === "node") return ok({ ...caller, role, scopes: [] });
  if (caller.role === "node") {
    return fail("missing_scope", 'this token has role "node"; it can not connect as "operator"', {
      hint: "Use a token with role operator (gateway.auth.tokens).",
    });
  }
  if (claim.scopes === undefined || claim.scopes.length === 0) return ok(caller);
  // Clients of other gateways also list devices with this scope. Here that is reading.
  const asked = claim.scopes.map((scope) => (scope === "operator.pairing" ? "operator.read" : scope));
  const scopes = expandScopes(asked).filter((scope) => caller.scopes.includes(scope));
  return ok({ ...caller, scopes, parts: adminParts(caller.scopes, claim.scopes) });
}

/** Returns the rights of a session's pass, which gets no events of other sessions. */
function passRights(given: string, sessionOf: SessionOfPass | undefined): Caller | undefined {
  const key = sessionOf?.(given);
  if (key === undefined) return undefined;
  // A key with a `*`, for example from a platform's id, would match other sessions if it were used as a
  // pattern.
  const patterns = key.includes("*") ? [] : [key];
  return { id: tokenId(given), role: "operator", scopes: SCOPES, patterns, actsAs: key };
}

/** Returns the operator token with this id. Access tokens can be derived only from operator tokens. */
function operatorToken(tokens: readonly TokenSettings[], id: string): TokenSettings | undefined {
  return tokens.find(({ token, role }) => role === "operator" && tokenId(token) === id);
}

/** Returns the current rights of an access token, or undefined if its parent token was removed. */
function rowRights(tokens: readonly TokenSettings[], row: AccessTokenRow): TokenRights | undefined {
  const parent = operatorToken(tokens, row.tokenId);
  if (parent === undefined) return undefined;
  return { role: "operator", ...limitedTo({ ...row, scopes: expandScopes(row.scopes) }, callerOf(parent)) };
}

function accessTokenText(id: string, parent: string): string {
  return `${ACCESS_TOKEN_PREFIX}.${id}.${accessSeal(id, parent)}`;
}

/**
 * Returns the current rights of all tokens that are valid over HTTP, with the ids of their callers. `rows`:
 * the access tokens that have not expired.
 */
export function currentRights(
  tokens: readonly TokenSettings[],
  rows: readonly AccessTokenRow[],
): (TokenRights & Pick<Caller, "id">)[] {
  const derived = rows.flatMap((row) => {
    const parent = operatorToken(tokens, row.tokenId);
    const rights = rowRights(tokens, row);
    // The token of a signed-in client is valid for requests to /mcp only (AU7).
    if (parent === undefined || rights === undefined || row.signIn !== undefined) return [];
    return [{ ...rights, id: tokenId(accessTokenText(row.id, parent.token)) }];
  });
  return [...tokens.map(callerOf), ...derived];
}

function admitAccess(
  { id, sealedBy, caller, until = Number.POSITIVE_INFINITY }: SealedToken,
  given: {
    readonly row: AccessTokenRow | undefined;
    readonly tokens: readonly TokenSettings[];
    readonly now: number;
    readonly forMcp: boolean | undefined;
  },
): Result<Caller> {
  const { row, tokens, now, forMcp } = given;
  const isSignIn = until !== Number.POSITIVE_INFINITY;
  const hint = isSignIn ? SIGN_IN : NEW_TOKEN;
  // The holder of any configured token can sign any id, so the signer must be the row's own parent token.
  const isOwn = row?.tokenId === sealedBy && (row.signIn !== undefined) === isSignIn;
  const rights = isOwn ? rowRights(tokens, row) : undefined;
  if (row === undefined || rights === undefined)
    return fail("unauthorized", "the access token was revoked", { hint });
  if (now >= row.expiresAt || now >= until)
    return fail("unauthorized", "the access token has expired", { hint });
  if (isSignIn && forMcp !== true)
    return fail("unauthorized", "this token is valid for requests to /mcp only");
  return ok({ ...rights, id: caller, accessToken: id, ...(isSignIn ? { until } : {}) });
}

export interface AccessTokenRows {
  /** Returns undefined if the token was revoked. */
  find(id: string): Promise<AccessTokenRow | undefined>;
  /** Records that somebody used a valid token. */
  used(row: AccessTokenRow): void;
}

/** Returns the session of a pass. */
type SessionOfPass = (token: string) => string | undefined;

export function createAuthority(
  clock: Clock,
  tokens: readonly TokenSettings[],
  passes?: SessionOfPass,
  accessTokens?: AccessTokenRows,
): Authority {
  const guesses = createGuessLimit(clock);
  const accessRights: Authority["accessRights"] = (row) => rowRights(tokens, row);
  return {
    accessRights,
    sign(text, by) {
      const parent = operatorToken(tokens, by);
      return parent === undefined ? undefined : signInSeal(text, parent.token);
    },
    accessToken(caller, id) {
      const parent = operatorToken(tokens, caller.id);
      return parent === undefined ? undefined : accessTokenText(id, parent.token);
    },
    async admit(remote, claim) {
      if (claim.token === undefined || claim.token === "") {
        return fail("unauthorized", "a token is required", { hint: WHICH_TOKEN });
      }
      const { token } = claim;
      const caller = passRights(token, passes) ?? rightsOf(tokens, token);
      if (caller !== undefined) return narrow(caller, claim);
      const session = sessionRights(tokens, token, clock.now());
      if (session !== undefined) return session.ok ? narrow(session.value, claim) : session;
      const sealed = readAccessToken(tokens, token) ?? readSignedIn(tokens, token);
      if (sealed !== undefined) {
        const row = await accessTokens?.find(sealed.id);
        const access = admitAccess(sealed, { row, tokens, now: clock.now(), forMcp: claim.forMcp });
        if (access.ok && row !== undefined) accessTokens?.used(row);
        return access.ok ? narrow(access.value, claim) : access;
      }
      const device = deviceRights(tokens, claim.token);
      if (device !== undefined) return admitDevice(device, claim, clock.now());
      const allowed = guesses.check(remote);
      if (!allowed.ok) return allowed;
      guesses.note(remote);
      return fail("unauthorized", "the token is not valid", { hint: WHICH_TOKEN });
    },
    deviceToken(caller, { deviceId, series, until }) {
      const parent = tokens.find((known) => tokenId(known.token) === caller.id);
      if (parent === undefined) return undefined;
      const grant: DeviceGrant = {
        device: deviceId,
        role: caller.role,
        scopes: caller.scopes,
        series,
        until,
        of: caller.id,
      };
      const body = Buffer.from(JSON.stringify(grant)).toString("base64url");
      return `${DEVICE_TOKEN_PREFIX}.${body}.${seal(body, parent.token)}`;
    },
  };
}

/**
 * Returns the generated token of this store directory. The first call creates it, readable by the owner only.
 */
export async function ensureToken(dir: string, world: World): Promise<string> {
  const file = join(dir, TOKEN_FILE);
  const read = async (): Promise<string | undefined> => {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw asStoreProblem(error, file);
    });
    return text?.trim();
  };
  const known = await read();
  // Refuse a truncated file: a short token could be guessed.
  if (known !== undefined && !TOKEN_IN_FILE.test(known)) throw new StoreProblem("no_token", file);
  if (known !== undefined) return known;
  await ensureFolder(dir).catch((error: unknown) => {
    throw asStoreProblem(error, dir);
  });
  const token = `${world.ids.uuid()}${world.ids.uuid()}`.replaceAll("-", "");
  // Never overwrites: if two processes start at the same time, one token wins and both use it.
  await writeFile(file, `${token}\n`, { mode: 0o600, flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw asStoreProblem(error, file);
  });
  return (await read()) ?? token;
}
