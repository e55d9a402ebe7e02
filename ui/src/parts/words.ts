// Finds words in short texts of the page.

/** Returns whether the text contains each of the words, in any order and letter case. */
export function hasWords(text: string, words: string): boolean {
  const lower = text.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}
