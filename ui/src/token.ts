// Owns the token on the page: where it comes from and where it is kept.
// TK1: a token in the address is taken out of it, and out of the history, before anything else happens.
// TK2: it is kept in session storage only: it goes with the tab, and no other site or tab reads it.

const STORED_UNDER = "parley.token";

/** What only this tab reads, and only until it is closed. */
export function tabStorage(): Storage | undefined {
  try {
    return window.sessionStorage;
  } catch {
    // A browser that forbids storage: the token lives as long as the page.
    return undefined;
  }
}

let inMemory: string | undefined;

/** `http://host/#token=…`, `token=…` or the token itself, as people paste it. */
export function tokenIn(text: string): string {
  const trimmed = text.trim();
  const found = /(?:^|[#&?])token=([^&\s]+)/.exec(trimmed)?.[1];
  if (found === undefined) return trimmed;
  try {
    return decodeURIComponent(found);
  } catch {
    return found;
  }
}

/** Takes the token of the gateway's link out of the address, and keeps it. False: there is none. */
export function takeTokenFromAddress(): boolean {
  const { hash, pathname, search } = window.location;
  if (!/^#(?:.*&)?token=/.test(hash)) return false;
  window.history.replaceState(null, "", pathname + search);
  keepToken(tokenIn(hash));
  return true;
}

export function keptToken(): string | undefined {
  return inMemory ?? tabStorage()?.getItem(STORED_UNDER) ?? undefined;
}

export function keepToken(token: string): void {
  inMemory = token;
  tabStorage()?.setItem(STORED_UNDER, token);
}

export function forgetToken(): void {
  inMemory = undefined;
  tabStorage()?.removeItem(STORED_UNDER);
}
