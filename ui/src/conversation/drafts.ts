// Owns the unsent text of each session. It is kept as long as the tab is open.

import { signal } from "@preact/signals";
import { inDemo } from "../demo/scene.ts";
import { tabStorage } from "../token.ts";

/**
 * The drafts of the demo have a key of their own, because the demo's session keys equal those of the reader's
 * own gateway.
 */
const STORED_UNDER = inDemo ? "parley.demo-draft:" : "parley.draft:";
/** Maximum length of a stored draft. A longer draft is kept only in memory. */
const STORED_MAX_CHARS = 200_000;

const inMemory = new Map<string, string>();

export function draftOf(sessionKey: string): string {
  return inMemory.get(sessionKey) ?? tabStorage()?.getItem(STORED_UNDER + sessionKey) ?? "";
}

export function keepDraft(sessionKey: string, text: string): void {
  inMemory.set(sessionKey, text);
  try {
    if (text === "" || text.length > STORED_MAX_CHARS) tabStorage()?.removeItem(STORED_UNDER + sessionKey);
    else tabStorage()?.setItem(STORED_UNDER + sessionKey, text);
  } catch {
    // The storage is full: this draft is lost when the page is closed.
  }
}

/** A text to add to the field of a session's composer. */
export const handed = signal<{ readonly sessionKey: string; readonly text: string } | undefined>(undefined);

/**
 * Adds a text to the field of a session's composer, below the text that is already there, and moves the focus
 * there.
 */
export function edit(sessionKey: string, text: string): void {
  handed.value = { sessionKey, text };
}
