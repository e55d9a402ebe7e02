// Owns which dialog is open above the views. The code of these dialogs is in palette/.

import { signal } from "@preact/signals";

export const overlay = signal<"palette" | "keys" | "new-session" | "messages" | "dispatch" | undefined>(
  undefined,
);

/** Words with which the search in messages opens. */
export const messageWords = signal("");

/** Opens the search in messages. `words`: the words to search at once. */
export function searchMessages(words = ""): void {
  messageWords.value = words;
  overlay.value = "messages";
}

/** Returns the name of the action that searches messages for the words of another search. */
export const searchName = (words: string): string => `Search messages for "${words}"`;

/** Letters that the reader typed while the code of the palette was loading. */
let early = "";

export function keepLetter(key: string): void {
  if (key.length === 1) early += key;
}

export function takeLetters(): string {
  const letters = early;
  early = "";
  return letters;
}
