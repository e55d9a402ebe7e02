// Owns the tokens of signed-in MCP clients. A sign-in is a row of the access tokens, so it is listed and
// revoked like them, and any gateway of the store can answer the next request.
// GR1: a code works once, for a minute, and only for the client, the address and the verifier that belong to
//      it. A code that is used again ends the sign-in, because one of its users stole it.
// GR2: an access token is valid for an hour. A refresh token is valid until the sign-in was unused for 30
//      days, or for a minute after its first use: the answer may be lost, or two processes of a client may
//      use it at once. Both get the same next refresh token. A later use ends the sign-in.

import { createHash } from "node:crypto";
import { optional } from "../../../core/optional.ts";
import type { Unit } from "../../../engine/unit.ts";
import { type Authority, isSameToken } from "../../../gateway/auth.ts";
import type { BasicDeps } from "../../../gateway/call.ts";
import { ACCESS, CODE, REFRESH, readSealed, sealedText } from "../../../gateway/sealed.ts";
import {
  type AccessTokenRow,
  deleteAccessToken,
  holdAccessToken,
  type SignIn,
  setSignIn,
} from "../../../store/queries/access-tokens.ts";

export const CODE_MS = 60_000;
const ACCESS_MS = 3_600_000;
const UNUSED_MS = 30 * 86_400_000;
/** Time after its first use for which a refresh token is still valid (GR2). */
const REPEAT_MS = 60_000;
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

export interface GrantParts {
  readonly deps: BasicDeps;
  readonly authority: Authority;
  /** Closes the requests that use this sign-in. */
  end(id: string): void;
}

/** Parameters of a request for tokens. */
export type Params = Readonly<Record<string, string>>;

interface Issued {
  readonly access_token: string;
  readonly token_type: "Bearer";
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
}

/** The id of a client may be long, so only its hash is stored. */
export function clientHash(clientId: string): string {
  return createHash("sha256").update(clientId).digest("base64url");
}

function sealText(authority: Authority, text: string, by: string): string | undefined {
  const mark = authority.sign(text, by);
  return mark === undefined ? undefined : `${text}.${mark}`;
}

/** Returns the code of a new sign-in. */
export function codeOf(authority: Authority, { id, tokenId }: AccessTokenRow): string | undefined {
  return sealText(authority, sealedText(CODE, id, 0), tokenId);
}

type SignedIn = AccessTokenRow & { readonly signIn: SignIn };

/** Finds the sign-in of a code or refresh token, and locks its row. */
async function find(
  { authority }: GrantParts,
  unit: Unit,
  kind: typeof CODE | typeof ACCESS | typeof REFRESH,
  given = "",
): Promise<{ row: SignedIn; number: number } | undefined> {
  const read = readSealed(kind, given);
  const row = read === undefined ? undefined : await holdAccessToken(unit.tx, read.id);
  if (read === undefined || row?.signIn === undefined || row.expiresAt <= unit.now) return undefined;
  const mark = authority.sign(read.text, row.tokenId);
  if (mark === undefined || !isSameToken(mark, read.mark)) return undefined;
  return { row: { ...row, signIn: row.signIn }, number: read.number };
}

/** Ends a sign-in. */
async function drop({ end }: GrantParts, unit: Unit, id: string): Promise<undefined> {
  await deleteAccessToken(unit.tx, id);
  unit.after(() => end(id));
  return undefined;
}

/** Issues tokens of a sign-in: the next ones, or those of the current `generation` again. */
async function issue(
  { authority }: GrantParts,
  unit: Unit,
  row: SignedIn,
  generation = row.signIn.generation + 1,
): Promise<Issued | undefined> {
  const { id, tokenId, signIn } = row;
  const access = sealText(authority, sealedText(ACCESS, id, unit.now + ACCESS_MS), tokenId);
  const refresh = sealText(authority, sealedText(REFRESH, id, generation), tokenId);
  const scope = authority.accessRights(row)?.scopes.join(" ");
  if (access === undefined || refresh === undefined || scope === undefined) return undefined;
  const isNext = generation > signIn.generation;
  const issuedAt = isNext ? unit.now : signIn.issuedAt;
  await setSignIn(unit.tx, id, { ...signIn, generation, ...optional({ issuedAt }) }, unit.now + UNUSED_MS);
  const expires_in = ACCESS_MS / 1000;
  return { access_token: access, token_type: "Bearer", expires_in, refresh_token: refresh, scope };
}

function proves(challenge: string, verifier = ""): boolean {
  if (!VERIFIER.test(verifier)) return false;
  return isSameToken(createHash("sha256").update(verifier).digest("base64url"), challenge);
}

/** Exchanges a code for the first tokens (GR1). Returns undefined if the code is not valid. */
export function exchange(parts: GrantParts, params: Params): Promise<Issued | undefined> {
  return parts.deps.engine.commit(async (unit) => {
    const found = await find(parts, unit, CODE, params.code);
    const signIn = found?.row.signIn;
    if (found === undefined || signIn?.clientId !== clientHash(params.client_id ?? "")) return undefined;
    if (signIn.redirectUri !== params.redirect_uri) return undefined;
    if (!proves(signIn.challenge, params.code_verifier)) return undefined;
    return signIn.generation === 0 ? issue(parts, unit, found.row) : drop(parts, unit, found.row.id);
  });
}

/** Exchanges a refresh token for new tokens (GR2). Returns undefined if the refresh token is not valid. */
export function refresh(parts: GrantParts, params: Params): Promise<Issued | undefined> {
  return parts.deps.engine.commit(async (unit) => {
    const found = await find(parts, unit, REFRESH, params.refresh_token);
    if (found?.row.signIn.clientId !== clientHash(params.client_id ?? "")) return undefined;
    const { row, number } = found;
    const { generation, issuedAt = 0 } = row.signIn;
    if (number === generation) return issue(parts, unit, row);
    const isRepeat = number === generation - 1 && unit.now < issuedAt + REPEAT_MS;
    return isRepeat ? issue(parts, unit, row, generation) : drop(parts, unit, row.id);
  });
}

/** Ends the sign-in of an access token or a refresh token, at the wish of its client. */
export async function revoke(parts: GrantParts, params: Params): Promise<void> {
  await parts.deps.engine.commit(async (unit) => {
    const { token } = params;
    const found = (await find(parts, unit, REFRESH, token)) ?? (await find(parts, unit, ACCESS, token));
    if (found !== undefined) await drop(parts, unit, found.row.id);
  });
}
