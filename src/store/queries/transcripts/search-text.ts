// Splits texts and search texts into the words of the full-text index, and cuts the excerpt of a match. No
// part of a search text is interpreted as query syntax.
// X2: texts and search texts are split into words in the same way.
// X3: a long text is indexed in parts, so that no step takes long. Each part begins with the last words of
//     the previous part, so that each phrase is complete in one of them.

import { createHash } from "node:crypto";

/** Maximum number of indexed characters per message. No message from outside can be longer. */
export const INDEXED_CHARS_MAX = 1_000_000;
/** Characters per part of a long text. The embedded index needs a few milliseconds for a part. */
const PART_CHARS = 64 * 1024;
/** Maximum number of parts of a text. Part numbers are smaller than this. */
export const PARTS_MAX = 4_096;
const QUESTION_CHARS_MAX = 1_000;
/**
 * Maximum length of a text that a search text can match. It is longer than the search text, because a letter
 * may consist of several characters.
 */
const PHRASE_CHARS_MAX = 4 * QUESTION_CHARS_MAX;
const WORDS_MAX = 16;
/**
 * Minimum length of a word that also matches longer words that begin with it. A shorter word would match most
 * of the index.
 */
export const PREFIX_CHARS_MIN = 3;
const EXCERPT_CHARS = 240;
const EXCERPT_LEAD_CHARS = 60;

/** Matches characters of writing systems that do not separate words by spaces. Each is indexed as a word. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu;
const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;
/** Matches characters that separate words. */
const BETWEEN_WORDS = new RegExp(`[^\\p{L}\\p{N}\\p{M}\\p{Co}]|${UNSPACED.source}`, "gu");

/** Puts spaces around each character of writing systems that do not separate words by spaces. */
export function spaceWords(text: string): string {
  return text.replace(UNSPACED, " $& ");
}

const token = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

/** Returns the index token of a session. */
export function sessionToken(sessionKey: string): string {
  return `s${token(sessionKey)}`;
}

/** Returns the index token for all sessions of an agent. */
export function agentToken(agentId: string): string {
  return `a${token(agentId)}`;
}

/**
 * Returns the index tokens for the session and the agent of a message. If the session was deleted, its agent
 * is unknown.
 */
export function placeTokens(sessionKey: string, agentId: string | undefined): string[] {
  return [sessionToken(sessionKey), ...(agentId === undefined ? [] : [agentToken(agentId)])];
}

/** Returns the last words of a part, up to the maximum length of a phrase. */
function lastWords(part: string): string {
  const words = part.match(WORD) ?? [];
  let chars = 0;
  const from = words.findLastIndex((word) => {
    chars += word.length;
    return chars > PHRASE_CHARS_MAX;
  });
  return words.slice(from + 1).join(" ");
}

/** Splits a text into the parts of the embedded index. */
export function* textParts(text: string): Generator<string> {
  let lead = "";
  for (let from = 0; from < text.length; ) {
    BETWEEN_WORDS.lastIndex = from + PART_CHARS;
    const end = BETWEEN_WORDS.exec(text)?.index ?? text.length;
    const part = `${lead}${spaceWords(text.slice(from, end))}`;
    yield part;
    lead = `${lastWords(part)} `;
    from = end;
  }
}

/**
 * Returns the words of a search text. A word may consist of several tokens, which are then searched as a
 * phrase. The list is empty if nothing can be looked up.
 */
export function wordsOf(question: string): string[] {
  const words = question
    .slice(0, QUESTION_CHARS_MAX)
    .split(/\s+/u)
    .map((part) => (spaceWords(part).match(WORD) ?? []).join(" "))
    .filter((word) => word !== "");
  return [...new Set(words)].slice(0, WORDS_MAX);
}

/**
 * Builds a match expression. It requires all words, in any order, and one of the tokens in `places` if given.
 * Each long enough word also matches as a prefix.
 */
export function matchText(words: readonly string[], places: readonly string[] | undefined): string {
  const phrases = words.map((word) => `"${word}"${word.length < PREFIX_CHARS_MIN ? "" : " *"}`);
  const texts = `{text} : (${phrases.join(" AND ")})`;
  return places === undefined ? texts : `{place} : (${places.join(" OR ")}) AND ${texts}`;
}

/** Returns the text around the first match of any of the words, on one line. */
export function excerptOf(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const found = words
    .map((word) => lower.indexOf(word.replaceAll(" ", "").toLowerCase()))
    .filter((at) => at >= 0);
  const start = found.length === 0 ? 0 : Math.max(0, Math.min(...found) - EXCERPT_LEAD_CHARS);
  const piece = text.slice(start, start + EXCERPT_CHARS).toWellFormed();
  const line = piece.replace(/\s+/gu, " ").replaceAll("\ufffd", "").trim();
  return `${start > 0 ? "…" : ""}${line}${start + EXCERPT_CHARS < text.length ? "…" : ""}`;
}
