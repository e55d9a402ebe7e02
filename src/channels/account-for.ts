// Owns which of a channel's accounts is meant.
// AF1: without a name it is the first one; a name that is not configured, as in a route that has outlived its
//      account, is none, and never another.

import { fail, ok, type Result } from "../core/errors.ts";

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
    const shown = JSON.stringify((accountId ?? "").slice(0, ID_SHOWN_CHARS));
    const there = accounts.map(idOf).join(", ");
    return fail("channel_unknown", `the channel ${channel} has no account ${shown}; there is: ${there}`);
  };
}
