// Finds words in short texts of the page, and joins them.

/** Returns whether the text contains each of the words, in any order and letter case. */
export function hasWords(text: string, words: string): boolean {
  const lower = text.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** Names the state of a message between sessions. */
export const receiptWord = (state: string): string => (state === "in_turn" ? "read" : state);

const OUTCOMES: Readonly<Record<string, string>> = {
  ok: "done",
  error: "failed",
  timeout: "timed out",
  aborted: "stopped",
};

/** Names the state of a run or a job. */
export const outcomeWord = (state: string): string => OUTCOMES[state] ?? state;

/** Joins the parts that are not empty: `12 s · 3 tools`. */
export function joinWords(parts: readonly string[], between = " · "): string {
  return parts.filter((part) => part !== "").join(between);
}
