// Finds the channel account that a route names.
// A route without an account id uses the first account. If the named account is no longer configured, the
// lookup fails; it never falls back to another account.

import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { quoted } from "../core/text/cut.ts";

const ID_SHOWN_CHARS = 60;

/** Returns a function that finds one of a channel's accounts by its id. */
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
    return fail(
      "channel_unknown",
      `the channel ${channel} has no account ${shown}; its accounts are: ${there}`,
    );
  };
}
