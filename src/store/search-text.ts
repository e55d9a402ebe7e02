// Owns the words of the full-text index: how text goes in, how a question is asked, what is shown of a hit.
// X1: a question is data: nothing in it is ever read as query syntax.
// X2: text and questions are cut into words in the same way.
// X3: a long text goes in as several parts, none of which takes long. Each part begins with the last words of
//     the one before, so that no phrase of a question is torn.

import { createHash } from "node:crypto";

/** Characters of one message that are indexed: more than a message from outside can have. */
export const INDEXED_CHARS_MAX = 1_000_000;
/** Characters of one part of a longer text: the embedded index takes some milliseconds for it. */
const PART_CHARS = 64 * 1024;
/** The parts of one text have numbers below this one. */
export const PARTS_MAX = 4_096;
const QUESTION_CHARS_MAX = 1_000;
/** Letters of a text that a question can match at most: a letter may be written with several signs. */
const PHRASE_CHARS_MAX = 4 * QUESTION_CHARS_MAX;
const WORDS_MAX = 16;
/** Shorter words are found whole only: as beginnings they would match most of the index. */
export const PREFIX_CHARS_MIN = 3;
const EXCERPT_CHARS = 240;
const EXCERPT_LEAD_CHARS = 60;

/** Scripts that write no spaces: each sign is a word of its own. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu;
const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;
/** No word goes on over this place. */
const BETWEEN_WORDS = new RegExp(`[^\\p{L}\\p{N}\\p{M}\\p{Co}]|${UNSPACED.source}`, "gu");

/** The text with unspaced signs set apart. */
export function spaced(text: string): string {
  return text.replace(UNSPACED, " $& ");
}

function token(prefix: string, text: string): string {
  return prefix + createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** Stands for a session in the index. */
export function sessionToken(sessionKey: string): string {
  return token("s", sessionKey);
}

/** Stands for every session of an agent in the index. */
export function agentToken(agentId: string): string {
  return token("a", agentId);
}

/** What stands in the index for where a message is; the agent of a session that is gone is not known. */
export function placeTokens(sessionKey: string, agentId: string | undefined): string[] {
  return [sessionToken(sessionKey), ...(agentId === undefined ? [] : [agentToken(agentId)])];
}

/** The last words of a part, as far as one phrase can reach. */
function lastWords(part: string): string {
  const words = part.match(WORD) ?? [];
  let chars = 0;
  const from = words.findLastIndex((word) => {
    chars += word.length;
    return chars > PHRASE_CHARS_MAX;
  });
  return words.slice(from + 1).join(" ");
}

/** The parts of a text, one after the other, as the embedded index takes them. */
export function* textParts(text: string): Generator<string> {
  let lead = "";
  for (let from = 0; from < text.length; ) {
    BETWEEN_WORDS.lastIndex = from + PART_CHARS;
    const end = BETWEEN_WORDS.exec(text)?.index ?? text.length;
    const part = `${lead}${spaced(text.slice(from, end))}`;
    yield part;
    lead = `${lastWords(part)} `;
    from = end;
  }
}

/** The words asked for, each maybe of several signs; empty when nothing can be looked up. */
export function wordsOf(question: string): string[] {
  const words = question
    .slice(0, QUESTION_CHARS_MAX)
    .split(/\s+/u)
    .map((part) => (spaced(part).match(WORD) ?? []).join(" "))
    .filter((word) => word !== "");
  return [...new Set(words)].slice(0, WORDS_MAX);
}

/**
 * All the words, in any order, each also as the beginning of a longer one; in one of the places, if given.
 */
export function matchText(words: readonly string[], places: readonly string[] | undefined): string {
  const phrases = words.map((word) => `"${word}"${word.length < PREFIX_CHARS_MIN ? "" : " *"}`);
  const texts = `{text} : (${phrases.join(" AND ")})`;
  return places === undefined ? texts : `{place} : (${places.join(" OR ")}) AND ${texts}`;
}

/** Some text around the first of the words, on one line. */
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
