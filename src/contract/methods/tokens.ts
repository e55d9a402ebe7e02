// Defines the methods about access tokens, which operators create for other programs and people.

import { SCOPES } from "../../core/rules/scopes.ts";
import { about, flag, integer, list, named, number, type Of, object, oneOf, text } from "../schema.ts";
import { ADMIN, idempotencyKey, type MethodSpec, NOTHING, name } from "./parts.ts";

const SCOPES_MAX = SCOPES.length;
const PATTERNS_MAX = 32;
const DAYS_MAX = 366;

const scopes = list(oneOf(...SCOPES), "Scopes of the token. Each includes the smaller ones.", {
  minItems: 1,
  maxItems: SCOPES_MAX,
});
const sessions = list(name, "Session keys that the token covers; `*` stands for any text.", {
  minItems: 1,
  maxItems: PATTERNS_MAX,
});
const id = about(name, "Id of the access token.");

const rights = { scopes: list(oneOf(...SCOPES)) } as const;
const limited = { sessions: list(text(), "Session key patterns. Absent: every session.") } as const;

const ACCESS_TOKEN = named(
  "AccessTokenEntry",
  "A token that an operator created, without its text.",
  object(
    {
      id: text(),
      name: text(),
      ...rights,
      createdAtMs: number(),
      expiresAtMs: number(),
      current: flag("True for the token of this request."),
    },
    {
      ...limited,
      lastUsedAtMs: number(),
      createdFrom: text(
        "Setting of the token that created it. Absent if that token was removed: then this one is refused.",
      ),
    },
  ),
);
export type AccessTokenEntry = Of<typeof ACCESS_TOKEN>;

const CONFIGURED_TOKEN = named(
  "ConfiguredTokenEntry",
  "A token of the configuration, without its text.",
  object(
    {
      setting: text("Setting that contains the token, or `generated` for the token of the store directory."),
      role: oneOf("operator", "node"),
      ...rights,
      current: flag("True for the token of this request, or the one that its token was derived from."),
    },
    limited,
  ),
);
export type ConfiguredTokenEntry = Of<typeof CONFIGURED_TOKEN>;

export const TOKEN_METHODS = {
  "tokens.list": {
    scope: ADMIN,
    summary: "Lists tokens whose rights are within those of the caller's token.",
    params: NOTHING,
    result: object({
      ts: number(),
      mayCreate: flag("False for an access token, which creates no others."),
      tokens: list(ACCESS_TOKEN, "Newest first."),
      configured: list(CONFIGURED_TOKEN),
    }),
  },
  "tokens.create": {
    scope: ADMIN,
    summary: "Creates an access token with at most the rights of the caller's token.",
    params: object(
      {
        name: about(name, "Name of the person or program that uses it, at most 64 characters."),
        scopes,
        idempotencyKey,
      },
      {
        sessions: about(sessions, "Session key patterns. Default: those of the caller's token."),
        days: about(
          integer(undefined, { minimum: 1, maximum: DAYS_MAX }),
          "Number of days until it expires. Default 90.",
        ),
      },
    ),
    result: object(
      { ok: oneOf(true), entry: ACCESS_TOKEN },
      {
        token: text("The token, which is not stored. Absent in the answer to a repeated request."),
      },
    ),
  },
  "tokens.narrow": {
    scope: ADMIN,
    summary: "Takes rights from an access token, and closes the connections that it opened.",
    params: object({ id }, { scopes, sessions, idempotencyKey }),
    result: object({ ok: oneOf(true), entry: ACCESS_TOKEN }),
  },
  "tokens.revoke": {
    scope: ADMIN,
    summary: "Revokes an access token, and closes the connections that it opened.",
    params: object({ id }, { idempotencyKey }),
    result: object({ ok: oneOf(true), id: text(), revokedAtMs: number() }),
  },
} as const satisfies Record<string, MethodSpec>;
