// Implements the methods that list, create, narrow and revoke access tokens.
// TK1: a caller cannot create a token with rights that its own token lacks. It sees, narrows and revokes only
//      tokens whose rights are within its own (I9).
// TK2: only the first answer contains the text of a token, which is neither stored nor logged.

import type { TokenRights } from "../../../access/token.ts";
import type {
  AccessTokenEntry,
  ConfiguredTokenEntry,
  TOKEN_METHODS,
} from "../../../contract/methods/tokens.ts";
import type { ParamsOf, PayloadOf } from "../../../contract/methods.ts";
import { optional } from "../../../core/optional.ts";
import { expandScopes, isWithin, type Rights } from "../../../core/rules/scopes.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { TokenSettings } from "../../../core/shapes/settings/settings.ts";
import { quoted } from "../../../core/text/cut.ts";
import { isPlainLine } from "../../../core/text/label.ts";
import type { Unit } from "../../../engine/unit.ts";
import { takeAdvisoryLock } from "../../../store/locks.ts";
import {
  type AccessTokenRow,
  addAccessToken,
  deleteAccessToken,
  dropExpiredAccessTokens,
  holdAccessToken,
  listAccessTokens,
  setAccessTokenRights,
} from "../../../store/queries/access-tokens.ts";
import type { Tx } from "../../../store/sql.ts";
import { tokenId } from "../../../triggers/creator.ts";
import type { Authority } from "../../auth.ts";
import { type BasicDeps, type CallContext, commitAnswer, type Methods } from "../../call.ts";

export interface TokenDeps extends BasicDeps {
  readonly accessTokens: {
    /** The gateway's own token and the tokens of the configuration. */
    readonly configured: readonly (TokenSettings & Pick<ConfiguredTokenEntry, "setting">)[];
    readonly authority: Pick<Authority, "accessToken" | "accessRights">;
    /** Closes the connections that use this token. */
    end(id: string): void;
  };
}

type Context = CallContext<TokenDeps>;

const DAY_MS = 86_400_000;
const DAYS_DEFAULT = 90;
/** Maximum number of access tokens in a store. */
const TOKENS_MAX = 500;
/** Maximum number of MCP clients that are signed in with one token, so that others can sign in, too. */
const SIGN_INS_MAX = 100;
const NAME_MAX_CHARS = 64;

const rightsOf = ({ scopes, patterns }: TokenRights): Rights => ({ scopes, ...optional({ patterns }) });

/**
 * Returns the current rights of an access token. If the token from which it was derived was removed, these
 * are the stored rights.
 */
function rightsNow({ deps }: Context, row: AccessTokenRow): Rights {
  return rightsOf(deps.accessTokens.authority.accessRights(row) ?? { role: "operator", ...row });
}

function entryOf(ctx: Context, row: AccessTokenRow): AccessTokenEntry {
  const { id, name, createdAt, usedAt, expiresAt } = row;
  const { scopes, patterns } = rightsNow(ctx, row);
  const parent = ctx.deps.accessTokens.configured.find(({ token }) => tokenId(token) === row.tokenId);
  return {
    id,
    name: ctx.deps.world.redactor.mask(name),
    scopes: expandScopes(scopes),
    createdAtMs: createdAt,
    expiresAtMs: expiresAt,
    current: ctx.caller.accessToken === id,
    ...optional({ sessions: patterns, lastUsedAtMs: usedAt, createdFrom: parent?.setting }),
  };
}

const isCoveredBy = (ctx: Context, rights: Rights): boolean => isWithin(rights, rightsOf(ctx.caller));

/** Returns true if the caller may see and change a token (TK1). */
function coversRow(ctx: Context, row: AccessTokenRow): boolean {
  const rights = rightsNow(ctx, row);
  // If a token has lost all its sessions, every caller would cover it, so its stored rights are checked, too.
  return isCoveredBy(ctx, rights) && (rights.patterns?.length !== 0 || isCoveredBy(ctx, row));
}

/**
 * Returns true if the caller's token may create others. Otherwise, the owner of a device token or an access
 * token could keep its rights after that token ends.
 */
export const mayCreate = ({ accessToken, device }: Context["caller"]): boolean =>
  accessToken === undefined && device === undefined;

/** Adds a token, unless there are already too many. */
export async function addWithin(unit: Unit, row: AccessTokenRow): Promise<Result<void>> {
  await takeAdvisoryLock(unit.tx, "limits");
  await dropExpiredAccessTokens(unit.tx, unit.now);
  const rows = await listAccessTokens(unit.tx, unit.now);
  const signIns = rows.filter(({ tokenId, signIn }) => signIn !== undefined && tokenId === row.tokenId);
  if (row.signIn !== undefined && signIns.length >= SIGN_INS_MAX)
    return fail("invalid_argument", `${SIGN_INS_MAX} programs are signed in with this token, the maximum`, {
      hint: "Revoke a sign-in that is no longer used: Operations, Tokens on the gateway's page.",
    });
  if (rows.length >= TOKENS_MAX)
    return fail("invalid_argument", `there are already ${TOKENS_MAX} access tokens, which is the maximum`, {
      hint: "Revoke a token that is no longer used.",
    });
  await addAccessToken(unit.tx, row);
  return ok(undefined);
}

function configuredEntries(ctx: Context): ConfiguredTokenEntry[] {
  return ctx.deps.accessTokens.configured
    .map(({ token, setting, role, scopes, sessions }) => ({
      setting,
      role,
      scopes: role === "node" ? [] : expandScopes(scopes),
      current: tokenId(token) === ctx.caller.id,
      ...optional({ sessions }),
    }))
    .filter(({ scopes, sessions, current }) => {
      return current || isCoveredBy(ctx, { scopes, ...optional({ patterns: sessions }) });
    });
}

/** Refuses rights that the caller's token lacks (TK1). */
export function checkWithin(caller: TokenRights, rights: Rights): Result<void> {
  if (isWithin(rights, rightsOf(caller))) return ok(undefined);
  const { scopes, patterns } = caller;
  const sessions = patterns === undefined ? "every session" : patterns.join(", ");
  return fail("missing_scope", "the new token cannot have rights that your own token lacks", {
    hint: `Your token has ${scopes.join(", ")} for ${sessions}.`,
  });
}

/** Finds a token that the caller may change. Any other token gives the same error as an unknown one. */
async function find(ctx: Context, tx: Tx, id: string): Promise<Result<AccessTokenRow>> {
  const row = await holdAccessToken(tx, id);
  if (row !== undefined && row.expiresAt > ctx.deps.engine.now() && coversRow(ctx, row)) return ok(row);
  return fail("invalid_argument", `there is no access token ${quoted(id, 80)}`, {
    hint: "tokens.list lists the access tokens.",
  });
}

async function create(
  ctx: Context,
  { name, scopes, sessions, days = DAYS_DEFAULT }: ParamsOf<"tokens.create">,
): Promise<Result<PayloadOf<"tokens.create">>> {
  const { deps, caller } = ctx;
  if (!mayCreate(caller))
    return fail("missing_scope", "neither an access token nor a device token can create access tokens", {
      hint: "Use a token of the configuration.",
    });
  const label = name.trim();
  if (label === "" || label.length > NAME_MAX_CHARS || !isPlainLine(label))
    return fail("invalid_argument", `name must be one line of 1 to ${NAME_MAX_CHARS} characters`);
  const rights: Rights = { scopes, ...optional({ patterns: sessions ?? caller.patterns }) };
  const allowed = checkWithin(caller, rights);
  if (!allowed.ok) return allowed;
  return deps.engine.commit(async (unit) => {
    const id = unit.newId();
    const token = deps.accessTokens.authority.accessToken(caller, id);
    if (token === undefined) return fail("missing_scope", "this token cannot create access tokens");
    const expiresAt = unit.now + days * DAY_MS;
    const row = { id, tokenId: caller.id, name: label, ...rights, createdAt: unit.now, expiresAt };
    const added = await addWithin(unit, row);
    if (!added.ok) return added;
    const answer = { ok: true, entry: entryOf(ctx, row) } as const;
    await ctx.remember(unit, answer);
    return ok({ ...answer, token });
  });
}

async function narrow(
  ctx: Context,
  { id, scopes, sessions }: ParamsOf<"tokens.narrow">,
): Promise<Result<PayloadOf<"tokens.narrow">>> {
  return commitAnswer(ctx, async (unit) => {
    const found = await find(ctx, unit.tx, id);
    if (!found.ok) return found;
    const before = rightsNow(ctx, found.value);
    const rights: Rights = {
      scopes: scopes ?? before.scopes,
      ...optional({ patterns: sessions ?? before.patterns }),
    };
    if (!isWithin(rights, before))
      return fail("invalid_argument", "narrowing cannot give a token more rights", {
        hint: "Create a new token with these rights.",
      });
    await setAccessTokenRights(unit.tx, id, rights);
    unit.after(() => ctx.deps.accessTokens.end(id));
    return ok({ ok: true, entry: entryOf(ctx, { ...found.value, ...rights }) });
  });
}

export const tokenMethods: Methods<keyof typeof TOKEN_METHODS, TokenDeps> = {
  "tokens.list": {
    async handle(ctx) {
      const ts = ctx.deps.engine.now();
      const rows = await listAccessTokens(ctx.access.db, ts);
      const tokens = rows.filter((row) => coversRow(ctx, row)).map((row) => entryOf(ctx, row));
      return ok({ ts, mayCreate: mayCreate(ctx.caller), tokens, configured: configuredEntries(ctx) });
    },
  },
  "tokens.create": { handle: create },
  "tokens.narrow": { handle: narrow },
  "tokens.revoke": {
    handle: (ctx, { id }) =>
      commitAnswer(ctx, async (unit) => {
        const found = await find(ctx, unit.tx, id);
        if (!found.ok) return found;
        await deleteAccessToken(unit.tx, id);
        unit.after(() => ctx.deps.accessTokens.end(id));
        return ok({ ok: true, id, revokedAtMs: unit.now });
      }),
  },
};
