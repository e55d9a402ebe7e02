// Owns which account of a channel a route means: without an account id the first one. An id that is no longer
// configured fails and never falls back to another account.

import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { quoted } from "../core/text/cut.ts";

const ID_SHOWN_CHARS = 60;

/** Finds one of a channel's accounts by its id. */
export function accountFor<T>(
  channel: string,
  accounts: readonly T[],
  idOf: (account: T) => string,
): (accountId: string | undefined) => Result<T> {
  return (accountId) => {
    const found =
      accountId === undefined ? accounts[0] : accounts.find((account) => idOf(account) === accountId);
    if (found !== undefined) return ok(found);
    const shown = quoted(accountId ?? "", ID_SHOWN_CHARS);
    const there = accounts.map(idOf).join(", ");
    return fail("channel_unknown", `the channel ${channel} has no account ${shown}; there is: ${there}`);
  };
}
