// Makes the tokens of a joined program's windows from the gateway's own token. Also renews and revokes them.

import { findAddress, findToken, loadedSettings } from "../../cli/address.ts";
import type { Cli } from "../../cli/cli.ts";
import { openLink } from "../../cli/gateway-link.ts";
import { readSessionToken, SESSION_TOKEN_MS, sessionToken } from "../../contract/session-token.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { formatKey } from "../../core/shapes/session-key.ts";
import { defaultAgent } from "../../core/shapes/settings/settings.ts";
import { type JoinRecord, readRecord, WINDOW_NUMBERS, windowHandle, writeRecord } from "./record.ts";

/** Tokens that would expire within this time are renewed. */
const RENEW_BELOW_MS = SESSION_TOKEN_MS / 2;
const REVOKE_WITHIN_MS = 5_000;

type Tokens = Pick<JoinRecord, "tokens" | "series">;

/** Makes a token for each window. `series`: if these windows have tokens already, the series of these. */
export async function makeTokens(cli: Cli, handle: string, series?: string): Promise<Result<Tokens>> {
  const known = await findToken(cli);
  if (!known.ok) return known;
  const token = known.value;
  if (token === "") {
    return fail("unauthorized", "There is no token yet: the gateway generates one at its first start.", {
      hint: "Start the gateway: npx parley-gateway",
    });
  }
  if (/^p(at1|dt1|st2)\./.test(token)) {
    return fail(
      "unauthorized",
      "The tokens of windows are made from a token of the gateway's configuration.",
      {
        hint: "Use that token: --token, PARLEY_TOKEN or gateway.auth.token.",
      },
    );
  }
  const { world } = cli.parts;
  const loaded = await loadedSettings(cli);
  if (!loaded.ok) return loaded;
  const agentId = defaultAgent(loaded.value).id;
  const keys = WINDOW_NUMBERS.map((number) =>
    formatKey({ form: "external", agentId, client: "mcp", id: windowHandle(handle, number) }),
  );
  const grant = { series: series ?? world.ids.uuid(), until: world.clock.now() + SESSION_TOKEN_MS };
  const tokens = keys.map((sessionKey) => sessionToken(token, { sessionKey, ...grant }));
  return ok({ series: grant.series, tokens });
}

/** Renews tokens that expire soon, provided that the current token of the gateway made them. */
export async function renewTokens(cli: Cli, record: JoinRecord): Promise<JoinRecord> {
  const claim = readSessionToken(record.tokens[0] ?? "");
  const leftMs = (claim?.grant.until ?? 0) - cli.parts.world.clock.now();
  const token = leftMs < RENEW_BELOW_MS ? await findToken(cli) : undefined;
  if (claim === undefined || token?.ok !== true) return record;
  if (claim.sealBy(token.value) !== claim.seal) return record;
  const made = await makeTokens(cli, record.handle, record.series);
  if (!made.ok) return record;
  const renewed = { ...record, ...made.value };
  writeRecord(cli.parts, renewed);
  return renewed;
}

/**
 * Returns the current token of a window. Reads the record again, because a window can stay open for longer
 * than its first token is valid: the token may have been renewed, or replaced by a later join.
 */
export function windowToken(cli: Cli, { handle, tokens }: JoinRecord, number: number): string {
  return (readRecord(cli.parts.home, handle)?.tokens ?? tokens)[number - 1] ?? "";
}

/** Revokes the tokens at the gateway. If this fails, returns the reason. */
export async function revokeTokens(cli: Cli, { series }: Tokens): Promise<string | undefined> {
  const address = await findAddress(cli);
  if (!address.ok) return address.error;
  const { world } = cli.parts;
  const link = await openLink(address.value, { reconnect: false, world, connectTimeoutMs: REVOKE_WITHIN_MS });
  if (!link.ok) return link.error;
  const revoked = await link.value.request("session.token.revoke", { series });
  link.value.client.close();
  return revoked.ok ? undefined : revoked.error;
}
