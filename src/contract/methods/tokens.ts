// Defines the methods for access tokens, which operators create for other programs and people.

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
  "An access token, without its secret text.",
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
        "Setting of the token that created this one. Absent if it was removed: then this one is refused.",
      ),
    },
  ),
);
export type AccessTokenEntry = Of<typeof ACCESS_TOKEN>;

const CONFIGURED_TOKEN = named(
  "ConfiguredTokenEntry",
  "A token of the configuration, without its secret text.",
  object(
    {
      setting: text("Setting that contains the token, or `generated` for the token in the store directory."),
      role: oneOf("operator", "node"),
      ...rights,
      current: flag("True for the token of this request, and for the token from which it was derived."),
    },
    limited,
  ),
);
export type ConfiguredTokenEntry = Of<typeof CONFIGURED_TOKEN>;

export const TOKEN_METHODS = {
  "tokens.list": {
    scope: ADMIN,
    summary: "Lists the tokens whose rights are within the rights of the caller's token.",
    params: NOTHING,
    result: object({
      ts: number(),
      mayCreate: flag("False if the caller uses an access token, because that cannot create others."),
      tokens: list(ACCESS_TOKEN, "Newest first."),
      configured: list(CONFIGURED_TOKEN),
    }),
  },
  "tokens.create": {
    scope: ADMIN,
    summary: "Creates an access token with at most the rights of the caller's token.",
    params: object(
      {
        name: about(name, "Name of the person or program that uses the token, at most 64 characters."),
        scopes,
        idempotencyKey,
      },
      {
        sessions: about(sessions, "Session key patterns. Default: the patterns of the caller's token."),
        days: about(
          integer(undefined, { minimum: 1, maximum: DAYS_MAX }),
          "Number of days until the token expires. Default: 90.",
        ),
      },
    ),
    result: object(
      { ok: oneOf(true), entry: ACCESS_TOKEN },
      {
        token: text("The text of the token, which is not stored. Absent if the request is a repetition."),
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
