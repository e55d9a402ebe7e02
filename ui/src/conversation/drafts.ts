// Owns the unsent text of each session. It is kept as long as the tab is open.

import { signal } from "@preact/signals";
import { newId } from "../clock.ts";
import { inDemo } from "../demo/scene.ts";
import { go } from "../route.ts";
import { keepInTab, tabStorage } from "../token.ts";

/** The demo has drafts of its own, because its session keys equal those of the reader's gateway. */
const STORED_UNDER = inDemo ? "parley.demo-draft:" : "parley.draft:";
/** Maximum length of a stored draft. A longer draft is kept only in memory. */
const STORED_MAX_CHARS = 200_000;

const inMemory = signal<ReadonlyMap<string, string>>(new Map());

function read(name: string): string {
  return inMemory.value.get(name) ?? tabStorage()?.getItem(name) ?? "";
}

function keep(name: string, text: string): void {
  inMemory.value = new Map(inMemory.peek()).set(name, text);
  if (text === "" || text.length > STORED_MAX_CHARS) tabStorage()?.removeItem(name);
  else keepInTab(name, text);
}

const requestUnder = (sessionKey: string): string => `${STORED_UNDER}${sessionKey}:request`;

/** Returns the id of the request that has begun to send this draft, or an empty text. */
export const begunRequest = (sessionKey: string): string => read(requestUnder(sessionKey));

/**
 * Returns the id of the request that sends this draft. It stays the same until the text changes, so that a
 * message whose sending was interrupted, also by a reload, is sent only once.
 */
export function requestOf(sessionKey: string): string {
  const id = begunRequest(sessionKey) || newId();
  keep(requestUnder(sessionKey), id);
  return id;
}

/** Has to be called when the message changes: it is another one then. */
export const forgetRequest = (sessionKey: string): void => keep(requestUnder(sessionKey), "");

/** Returns the unsent text of a session. A component that calls it is redrawn when the text changes. */
export const draftOf = (sessionKey: string): string => read(STORED_UNDER + sessionKey);

export function keepDraft(sessionKey: string, text: string): void {
  keep(STORED_UNDER + sessionKey, text);
  forgetRequest(sessionKey);
}

/** Key of the session whose composer has still to take the focus. */
export const focusedComposer = signal<string | undefined>(undefined);

/** Adds a text below that in the composer of a session, and moves the focus there. */
export function edit(sessionKey: string, text: string): void {
  const before = draftOf(sessionKey);
  if (text !== "") keepDraft(sessionKey, before.trim() === "" ? text : `${before}\n${text}`);
  focusedComposer.value = sessionKey;
}

/** Opens a session with the focus in its composer, to which the text is added. */
export function openToWrite(sessionKey: string, text = ""): void {
  edit(sessionKey, text);
  go({ view: "sessions", key: sessionKey });
}
