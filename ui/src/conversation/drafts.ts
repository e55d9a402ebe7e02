// Owns what a reader has begun to write, for each session: kept for as long as the tab lives.

const STORED_UNDER = "parley.draft:";
/** Longer drafts live in memory only. */
const STORED_MAX_CHARS = 200_000;

const inMemory = new Map<string, string>();

export function draftOf(sessionKey: string): string {
  const known = inMemory.get(sessionKey);
  if (known !== undefined) return known;
  try {
    return window.sessionStorage.getItem(STORED_UNDER + sessionKey) ?? "";
  } catch {
    return "";
  }
}

export function keepDraft(sessionKey: string, text: string): void {
  inMemory.set(sessionKey, text);
  try {
    const { sessionStorage } = window;
    if (text === "" || text.length > STORED_MAX_CHARS) sessionStorage.removeItem(STORED_UNDER + sessionKey);
    else sessionStorage.setItem(STORED_UNDER + sessionKey, text);
  } catch {
    // It lives as long as the page then.
  }
}
