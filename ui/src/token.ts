// Owns the token on the page: its source and its storage.
// TK1: a token in the address is removed from it, and from the history, before anything else happens.
// TK2: it is kept in session storage only: it is gone with the tab, and no other site or tab reads it.

const STORED_UNDER = "parley.token";

/** Returns storage that only this tab reads, until it is closed. Undefined: the browser forbids it. */
export function tabStorage(): Storage | undefined {
  try {
    return window.sessionStorage;
  } catch {
    // The browser forbids storage: the token lasts as long as the page.
    return undefined;
  }
}

let inMemory: string | undefined;

/** Extracts the token from pasted text: `http://host/#token=…`, `token=…` or the token itself. */
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

/** Moves the token from the address into storage. Returns false if there is none. */
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
