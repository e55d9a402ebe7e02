// Owns the reader's token: where the page gets it, and where it is stored.
// TK1: a token in the address is removed from the address and the history before anything else happens
//      (early/request.ts).
// TK2: the token is stored only in session storage, so it is deleted with the tab, and no other site or tab
//      can read it.

const STORED_UNDER = "parley.token";
/** Rows that the tab has shown, for a reload (first.ts). */
const ROWS_UNDER = "parley.rows";
/** Whether the tab shows the demo (demo/scene.ts). */
export const DEMO_UNDER = "parley.demo";

/** Returns the storage that belongs to this tab. Returns undefined if the browser forbids it. */
export function tabStorage(): Storage | undefined {
  try {
    return window.sessionStorage;
  } catch {
    // The browser forbids storage. So the token is lost when the page is closed.
    return undefined;
  }
}

let inMemory = window.early?.token;

/** Returns the token in pasted text: `http://host/#token=…`, `token=…` or the token alone. */
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

/** Moves the token from the address to the storage. Returns false if the address contains no token. */
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
  tabStorage()?.removeItem(ROWS_UNDER);
}

export function keptRows(): string | null | undefined {
  return tabStorage()?.getItem(ROWS_UNDER);
}

/** Keeps rows as long as the token: not after a sign-out. */
export function keepRows(rows: string): void {
  if (tabStorage()?.getItem(STORED_UNDER) != null) keepInTab(ROWS_UNDER, rows);
}

/** Keeps a text for a reload. If the storage is full, the text is lost when the page is closed. */
export function keepInTab(name: string, text: string): void {
  try {
    tabStorage()?.setItem(name, text);
  } catch {
    // The storage is full.
  }
}
