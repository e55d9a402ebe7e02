// Owns the full-text index on PostgreSQL: text as tsvectors, questions as tsqueries. What a word is, and what
// a question asks for, is the same as on the embedded database (search-text.ts): the same messages are found.
// SL1: all quoting is done here: nothing of a text or a question is read as syntax.
// SL2: a text of any length is indexed whole. A tsvector holds 16,383 places, 255 of one word and 1 MB: a
//      longer text gets several, which overlap so far that no phrase is torn.

import { PREFIX_CHARS_MIN, spaced } from "./search-text.ts";

/** Limits of one tsvector, with room for what is added to it. */
const PLACES_MAX = 16_000;
const PLACES_OF_WORD_MAX = 255;
const BYTES_MAX = 900_000;
/** A word longer than this is found by its beginning: a lexeme has less than 2,048 bytes. */
const WORD_CHARS_MAX = 500;
/** Signs of one phrase that are looked up; what follows them is not. */
const PHRASE_WORDS_MAX = 64;
/** No word has this sign: it sets apart what stands for a place, or marks a text of several parts. */
const MARK = "/";
const IN_PARTS = `${MARK}p`;

const WORD = /[\p{L}\p{N}\p{Co}]+/gu;
/** Small letters that have two forms. */
const FORMS: Readonly<Record<string, string>> = { ς: "σ", ſ: "s", µ: "μ" };

/** The words of a text, in order: small letters, a-z without marks, signs of unspaced scripts alone. */
export function lexemesOf(text: string): string[] {
  const plain = spaced(text)
    .normalize("NFD")
    .replace(/([a-z])[\u0300-\u036f]+/giu, "$1")
    .normalize("NFC")
    .replace(/[\u0300-\u036f]+/gu, "")
    .toLowerCase()
    .replace(/[ςſµ]/gu, (letter) => FORMS[letter] ?? letter);
  return (plain.match(WORD) ?? []).map((word) => word.slice(0, WORD_CHARS_MAX).toWellFormed());
}

function quoted(lexeme: string): string {
  return `'${lexeme.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

/** One tsvector in the making. */
class Part {
  readonly #places = new Map<string, number[]>();
  #count = 0;
  #bytes = 0;

  /** False: it is full, and the word has to go into the next part. */
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
    return [...this.#places].map(([lexeme, places]) => `${quoted(lexeme)}:${places.join(",")}`).join(" ");
  }
}

/** The index entries of a text, as texts of tsvectors; `places` are in each of them. */
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
  return parts.map((part) => `${part.text()} ${marks.map(quoted).join(" ")}`);
}

export interface LexemeQuestion {
  /** What a text of one part must match. */
  readonly whole: string;
  /** What a part of a text must match, and what its parts must match together, each in one of them. */
  readonly part: string;
  readonly together: readonly string[];
}

/** The question as tsqueries: all the words, in one of the places, if given. Undefined: nothing can match. */
export function lexemeQuestion(
  words: readonly string[],
  places: readonly string[] | undefined,
): LexemeQuestion | undefined {
  const together: string[] = [];
  for (const word of words) {
    const phrase = lexemesOf(word).slice(0, PHRASE_WORDS_MAX).map(quoted);
    if (phrase.length === 0) return undefined;
    together.push(`(${phrase.join(" <-> ")}${word.length < PREFIX_CHARS_MIN ? "" : ":*"})`);
  }
  const near = places === undefined ? "" : `(${places.map((place) => quoted(MARK + place)).join(" | ")}) & `;
  return {
    whole: near + together.join(" & "),
    part: `${quoted(IN_PARTS)} & ${near}(${together.join(" | ")})`,
    together,
  };
}
