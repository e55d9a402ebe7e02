// Owns who may connect: tokens, their rights, the rate limit on wrong ones, device tokens, the generated
// token.
// AU1: every token is compared with every configured one in constant time; no token, no rights, loopback
//      included.
// AU2: a caller never has more than its token: what a client asks for can only take rights away.
// AU3: an address that has used up its wrong guesses is told to wait, but a right token is always admitted: a
//      token is too long to be guessed, and others may share the address.
// AU4: a device token is good only as long as the token that it was made from, for 90 days, and only with the
//      signature of its device over the connection's challenge. So it opens nothing over HTTP.
// AU5: a session's pass opens that session's tools and nothing else; it makes no device tokens.

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fail, ok, type Result } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import type { TokenScope, TokenSettings } from "../core/settings.ts";
import { asStoreProblem, StoreProblem } from "../store/problems.ts";
import { tokenId } from "../triggers/creator.ts";
import { ensureFolder } from "../world/folders.ts";
import type { Clock, World } from "../world.ts";
import { createAllowance } from "./allowance.ts";
import { TOKEN_FILE } from "./protocol.ts";

/** Who is behind a connection or an HTTP request. */
export interface Caller {
  /** A hash of the token: the same for a device token and the token that it was made from. */
  readonly id: string;
  readonly role: "operator" | "node";
  /** With all that each contains. */
  readonly scopes: readonly TokenScope[];
  /** Key patterns that the token covers; absent: every session. */
  readonly patterns?: readonly string[];
  /** The token is a session's pass: it calls that session's tools, as the session, and nothing else. */
  readonly actsAs?: string;
  /** The device that signed this connection's challenge. */
  readonly deviceId?: string;
  /** The paired device that this connection is of. */
  readonly nodeId?: string;
  /** The device token that opened this connection. */
  readonly device?: { readonly deviceId: string; readonly role: Caller["role"]; readonly series: string };
}

/** The owner of a caller's idempotency keys: its device with this token, else the token. */
export function keyOwnerOf({ id, deviceId }: Pick<Caller, "id" | "deviceId">): string {
  return deviceId === undefined ? id : `${id}:${deviceId}`;
}

export interface Claim {
  readonly token?: string | undefined;
  readonly role?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  /** The id of the device that signed this connection's challenge; undefined: none did. */
  device?(): Result<string | undefined>;
}

export interface Authority {
  /** `remote`: the address that wrong tokens are counted against. */
  admit(remote: string, claim: Claim): Result<Caller>;
  /** A token that stands for this device with these rights; undefined when the caller's token is gone. */
  deviceToken(
    caller: Caller,
    given: { readonly deviceId: string; readonly series: string; readonly until: number },
  ): string | undefined;
}

/** From most to least: each contains those after it. */
const SCOPE_ORDER: readonly TokenScope[] = ["operator.admin", "operator.write", "operator.read"];
/** Wrong tokens that an address may send before it has to wait, for one more each six seconds. */
const GUESSES = { max: 10, everyMs: 6_000, usersMax: 10_000 };
const DEVICE_TOKEN_PREFIX = "pdt1";
/** How long a device token is good. Each connection gives the device a new one. */
export const DEVICE_TOKEN_MS = 90 * 24 * 60 * 60 * 1_000;
export const CONNECT_ANEW = "Connect with the gateway's token and the device's signature to get a new one.";
const WHICH_TOKEN = `Give gateway.auth.token, or the one in the file ${TOKEN_FILE} of the store directory.`;
/** What a token in a file looks like at least; the generated one is much longer. */
const TOKEN_IN_FILE = /^[^\p{Cc}\p{Cs}\uFFFD]{8,}$/u;

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** The scopes and everything that they contain, most first. Unknown names are left out. */
function expandScopes(scopes: readonly string[]): readonly TokenScope[] {
  const highest = SCOPE_ORDER.findIndex((scope) => scopes.includes(scope));
  return highest < 0 ? [] : SCOPE_ORDER.slice(highest);
}

/** Whether two tokens are the same, told in a time that does not depend on how near they are. */
export function isSameToken(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

/** Counts wrong tokens by address. */
export function createGuessLimit(clock: Clock) {
  const allowance = createAllowance(clock, GUESSES);
  return {
    /** Refuses an address that has used its guesses up. */
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

interface DeviceGrant {
  readonly device: string;
  readonly role: "operator" | "node";
  readonly scopes: readonly string[];
  /** Of the device's row in the store: a revoked token names one that is not there. */
  readonly series: string;
  /** When it ends (ms since 1970). */
  readonly until: number;
  /** `tokenId` of the token that it was made from. */
  readonly of: string;
}

function seal(grant: string, key: string): string {
  return createHmac("sha256", key).update(`device:${grant}`).digest("base64url");
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

/** What a token stands for, before the client's own wishes narrow it. */
function rightsOf(tokens: readonly TokenSettings[], given: string): Caller | undefined {
  const hash = digest(given);
  let found: Caller | undefined;
  for (const known of tokens) {
    // No early end: the time must not tell which token was near.
    if (timingSafeEqual(hash, digest(known.token))) found ??= callerOf(known);
  }
  return found;
}

function callerOf(known: TokenSettings): Caller {
  const scopes = known.role === "node" ? [] : expandScopes(known.scopes);
  const patterns = known.sessions === undefined ? {} : { patterns: known.sessions };
  return { id: tokenId(known.token), role: known.role, scopes, ...patterns };
}

/** The rights of a device token; undefined: it is none, or its parent is gone. */
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

/** The rights of a device token that its own device shows before it expires (AU4). */
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
      : "the device token was made for another device";
  return fail("unauthorized", error, { hint: CONNECT_ANEW });
}

function narrow(caller: Caller, claim: Claim): Result<Caller> {
  const role = claim.role ?? caller.role;
  if (role !== "operator" && role !== "node") {
    return fail("invalid_argument", `role must be "operator" or "node", got ${JSON.stringify(role)}`);
  }
  if (role === "node") return ok({ ...caller, role, scopes: [] });
  if (caller.role === "node") {
    return fail("missing_scope", 'this token has role "node"; it can not connect as "operator"');
  }
  if (claim.scopes === undefined || claim.scopes.length === 0) return ok(caller);
  const scopes = expandScopes(claim.scopes).filter((scope) => caller.scopes.includes(scope));
  return ok({ ...caller, scopes });
}

/** The rights of a session's pass; of other sessions' events it gets none. */
function passRights(given: string, sessionOf: SessionOfPass | undefined): Caller | undefined {
  const key = sessionOf?.(given);
  if (key === undefined) return undefined;
  // A `*` in an outside id must not become a pattern.
  const patterns = key.includes("*") ? [] : [key];
  return { id: tokenId(given), role: "operator", scopes: SCOPE_ORDER, patterns, actsAs: key };
}

/** The session that a token is a pass of. */
type SessionOfPass = (token: string) => string | undefined;

export function createAuthority(
  clock: Clock,
  tokens: readonly TokenSettings[],
  passes?: SessionOfPass,
): Authority {
  const guesses = createGuessLimit(clock);
  return {
    admit(remote, claim) {
      if (claim.token === undefined || claim.token === "") {
        return fail("unauthorized", "a token is required", { hint: WHICH_TOKEN });
      }
      const caller = passRights(claim.token, passes) ?? rightsOf(tokens, claim.token);
      if (caller !== undefined) return narrow(caller, claim);
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
 * The token that was generated for this store directory; made at the first call, readable by the owner only.
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
  // A token that was cut off could be guessed.
  if (known !== undefined && !TOKEN_IN_FILE.test(known)) throw new StoreProblem("no_token", file);
  if (known !== undefined) return known;
  await ensureFolder(dir).catch((error: unknown) => {
    throw asStoreProblem(error, dir);
  });
  const token = `${world.ids.uuid()}${world.ids.uuid()}`.replaceAll("-", "");
  // Never overwrites: of two starts at once, one token wins and both use it.
  await writeFile(file, `${token}\n`, { mode: 0o600, flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw asStoreProblem(error, file);
  });
  return (await read()) ?? token;
}
