// Owns the unsent text of each session, kept as long as the tab is open.

import { signal } from "@preact/signals";
import { inDemo } from "../demo/scene.ts";
import { tabStorage } from "../token.ts";

/** The demo's session keys equal those of the reader's own gateway, so its drafts are kept apart. */
const STORED_UNDER = inDemo ? "parley.demo-draft:" : "parley.draft:";
/** Longer drafts live in memory only. */
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
    // Storage is full. The draft is lost when the page is closed.
  }
}

/** A text that the composer of a session must add to its field. */
export const handed = signal<{ readonly sessionKey: string; readonly text: string } | undefined>(undefined);

/** Puts a text into the composer of a session, below the text that is already there. */
export function edit(sessionKey: string, text: string): void {
  handed.value = { sessionKey, text };
}
