// Converts texts to tsvectors, and search texts to tsqueries, for the full-text index on PostgreSQL. Words
// and matches are the same as on the embedded database (search-text.ts).
// SL1: only this file quotes texts for the index. No part of a text or a search text is interpreted as
//      syntax.
// SL2: a text of any length is indexed completely. A tsvector can hold 16,383 positions, 255 per word, and 1
//      MB. A longer text gets several tsvectors, which overlap so that each phrase is complete in one of
//      them.

import { PREFIX_CHARS_MIN, spaceWords } from "./search-text.ts";

/**
 * Limits of one tsvector. They are below PostgreSQL's limits, to leave room for tokens of sessions and
 * agents.
 */
const PLACES_MAX = 16_000;
const PLACES_OF_WORD_MAX = 255;
const BYTES_MAX = 900_000;
/** Maximum number of indexed characters of a word, because a lexeme must be shorter than 2,048 bytes. */
const WORD_CHARS_MAX = 500;
/** Maximum number of words of a phrase that are looked up; the rest is ignored. */
const PHRASE_WORDS_MAX = 64;
/**
 * Begins the index entries that are not words: tokens of sessions and agents, and the mark of a text that is
 * indexed in parts. No word contains this character.
 */
const MARK = "/";
const IN_PARTS = `${MARK}p`;

const WORD = /[\p{L}\p{N}\p{Co}]+/gu;
/**
 * Letters that exist in two lower-case forms. The first form is indexed as the second, so that both match.
 */
const FORMS: Readonly<Record<string, string>> = { ς: "σ", ſ: "s", µ: "μ" };

/**
 * Splits a text into words. Converts them to lower case and removes accents from a-z. In writing systems that
 * do not separate words by spaces, each character becomes a word.
 */
export function lexemesOf(text: string): string[] {
  const plain = spaceWords(text)
    .normalize("NFD")
    .replace(/([a-z])[\u0300-\u036f]+/giu, "$1")
    .normalize("NFC")
    .replace(/[\u0300-\u036f]+/gu, "")
    .toLowerCase()
    .replace(/[ςſµ]/gu, (letter) => FORMS[letter] ?? letter);
  return (plain.match(WORD) ?? []).map((word) => word.slice(0, WORD_CHARS_MAX).toWellFormed());
}

function quote(lexeme: string): string {
  return `'${lexeme.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

/** Builds one tsvector. */
class Part {
  readonly #places = new Map<string, number[]>();
  #count = 0;
  #bytes = 0;

  /** Adds a word. Returns false if the part is full; the word then belongs to the next part. */
  add(lexeme: string): boolean {
    const places = this.#places.get(lexeme);
    const bytes = this.#bytes + 2 + (places === undefined ? Buffer.byteLength(lexeme) + 8 : 0);
    if (this.#count === PLACES_MAX || bytes > BYTES_MAX || places?.length === PLACES_OF_WORD_MAX)
      return false;
    this.#count += 1;
    this.#bytes = bytes;
    if (places === undefined) this.#places.set(lexeme, [this.#count]);
    else places.push(this.#count);
    return true;
  }

  text(): string {
    return [...this.#places].map(([lexeme, places]) => `${quote(lexeme)}:${places.join(",")}`).join(" ");
  }
}

/** Returns the tsvectors of a text as literals. Each of them contains the tokens in `places`. */
export function vectorsOf(text: string, places: readonly string[]): string[] {
  const lexemes = lexemesOf(text);
  const parts: Part[] = [];
  for (let at = 0; at < lexemes.length; ) {
    const part = new Part();
    const from = at;
    while (at < lexemes.length && part.add(lexemes[at] ?? "")) at += 1;
    parts.push(part);
    if (at < lexemes.length) at = Math.max(from + 1, at - PHRASE_WORDS_MAX + 1);
  }
  const marks = [...places.map((place) => MARK + place), ...(parts.length > 1 ? [IN_PARTS] : [])];
  return parts.map((part) => `${part.text()} ${marks.map(quote).join(" ")}`);
}

export interface LexemeQuestion {
  /** Query for texts that are indexed in one part. */
  readonly whole: string;
  /** Query for texts in several parts. It finds each part that contains any of the words. */
  readonly part: string;
  /**
   * One query per word. A text in several parts matches if each of these queries matches one of its parts.
   */
  readonly together: readonly string[];
}

/**
 * Returns the search text as tsqueries that require all words and, if `places` is given, one of its tokens.
 * Undefined if nothing can match.
 */
export function lexemeQuestion(
  words: readonly string[],
  places: readonly string[] | undefined,
): LexemeQuestion | undefined {
  const together: string[] = [];
  for (const word of words) {
    const phrase = lexemesOf(word).slice(0, PHRASE_WORDS_MAX).map(quote);
    if (phrase.length === 0) return undefined;
    together.push(`(${phrase.join(" <-> ")}${word.length < PREFIX_CHARS_MIN ? "" : ":*"})`);
  }
  const near = places === undefined ? "" : `(${places.map((place) => quote(MARK + place)).join(" | ")}) & `;
  return {
    whole: near + together.join(" & "),
    part: `${quote(IN_PARTS)} & ${near}(${together.join(" | ")})`,
    together,
  };
}
