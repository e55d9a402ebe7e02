// Finds text that looks like a credential, in one pass from left to right.
// SH1: the work is linear in the length of the text. Certain characters (`:`, `=`, `-`, the first letter of a
//      token) start a matcher. A matcher looks back at most `LOOK_BEHIND_MAX` characters, and forward over
//      sequences of one kind of character. The ends of these sequences are cached. `Work.steps` counts each
//      examined character.
// SH2: a matcher decides within 20,200 characters whether a credential begins. The longest credential that
//      must be read to its end is a private key. Any other credential ends before the first character of
//      another kind. A stream that holds back this many characters can therefore be masked in windows.
// Masked text is not matched again, and no matcher looks back across it.

import {
  ALNUM,
  BACKSLASH,
  BASE64,
  BEARER,
  BEARER_PLAIN,
  BLANK,
  COOKIE,
  countOfKinds,
  DASHED,
  DIGIT,
  ESCAPED_TEXT,
  FIELD,
  HEADER,
  HEADER_PLAIN,
  isOf,
  KEY_LINE,
  type Kind,
  LOWER,
  PATH,
  UNDIGITAL,
  UNQUOTED,
  UNTIL_SLASH,
  UPPER,
  USER,
  VALUE,
  WORD,
  WORDLESS_DIGITS,
} from "./kinds.ts";
import { isMask, MASK, maskOf } from "./mask.ts";
import { type Body, NONE, run, TOKENS } from "./tokens.ts";

/** A matcher decides within this distance whether a credential begins (SH2). */
const DECIDED_WITHIN = 20_480;

/** Counter of examined characters. */
export interface Work {
  steps: number;
}

/** Longest text that a matcher looks back at: the scheme of a URL. */
const LOOK_BEHIND_MAX = 24;
const KEY_BLOCK_CHARS_MAX = 20_000;
const QUOTED_CHARS_MAX = 8_192;
const VALUE_CHARS_MAX = 4_096;
/** A credential contains a digit within this number of characters. */
const DIGIT_WITHIN = 100;
const BLANKS_MAX = 3;

/** Matches names whose value is a credential, also at the end of a longer name (`DB_PASSWORD`). */
const SECRET_NAME =
  "(?:password|passwd|passphrase|pwd|secret|token|credentials?|access[_-]?key[_-]?id" +
  "|(?:api|access|account|private|secret|signing|encryption)[_-]?key)";
const NAME_CHARS_MAX = 16;
const NAME_END = new RegExp(`${SECRET_NAME}$`, "i");
/**
 * Matches names of JSON fields and variables whose whole value is a credential. Not applied to prose, where
 * words like `cookie` can start a sentence.
 */
const SECRET_FIELD = new RegExp(`(?:${SECRET_NAME}|authorization|cookie)$`, "i");
const AUTH_SCHEME = /^["']?(?:basic|bearer|token|bot)[ \t]{1,3}/i;
const AUTH_SCHEME_MAX = 12;
const BEARER_WORD = "bearer";
/** Matches the separator of two lines of a private key. */
export const KEY_GAP = /^(?:\s|\\[nr]){1,4}/;
export const KEY_GAP_MAX = 8;
export const KEY_LINE_MIN = 8;
const SCHEME_END = /[a-z][a-z0-9+.-]+$/i;
const KEY_NAME = /PRIVATE KEY(?: BLOCK)?$/;

/** Returns whether a variable or field with this name holds a credential. */
export function isSecretName(name: string): boolean {
  return SECRET_FIELD.test(name);
}

/** Number of cached sequences per kind. A token has three parts of one kind. */
const RUNS_KEPT = 4;
const KINDS = countOfKinds();

/** URLs of web hooks with which anybody can post. The text after these prefixes is masked. */
const HOOKS = ["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"];
const SLACK_HOOK = "hooks.slack.com/";

const byFirst = new Map<number, (readonly [string, Body])[]>();
for (const token of TOKENS) {
  const first = token[0].charCodeAt(0);
  byFirst.set(first, [...(byFirst.get(first) ?? []), token]);
}

/** Characters that start a matcher. */
const STARTS = new Uint8Array(128);
for (const code of byFirst.keys()) STARTS[code] = 1;
for (const letter of "xhdbB") STARTS[letter.charCodeAt(0)] = 1;
for (const mark of ":=-") STARTS[mark.charCodeAt(0)] = 2;

const [COLON, DASH, X, UNDERSCORE, NEWLINE] = [0x3a, 0x2d, 0x78, 0x5f, 0x0a];
const BACKSLASH_CODE = 0x5c;
const QUOTES = [0x22, 0x27];
const CODE_BEHIND_MASK = 0x5d;

/** How the name before a `:` or `=` is quoted. */
type NameStyle = "plain" | "quoted" | "escaped";

/**
 * How a credential at the end of a text can continue: with a kind of character, or with lines of a private
 * key.
 */
export type Tail = Kind | "key lines";

/** Result of a search. */
export interface Scanned {
  readonly text: string;
  /** Position at which the search stopped, because the meaning of the rest depends on further text. */
  readonly stop: number;
  /** End of the last credential, or 0 if there is none. */
  readonly floor: number;
  /** How the credential continues, if the text ends inside one. */
  readonly tail?: Tail;
  /** The part of that credential before the end. Its mask is the end of `text`. */
  readonly hidden?: string;
}

/**
 * Positions in the current text at which no credential begins, although a matcher looked ahead. A mask that
 * follows may change this, so these positions belong to the undecided text.
 */
class FarSighted {
  readonly #entries: (readonly [at: number, looked: number])[] = [];

  add(at: number, looked: number): void {
    const last = this.#entries.at(-1);
    if (last !== undefined && last[1] <= at) this.#entries.length = 0;
    else if (last !== undefined && last[1] >= looked) return;
    this.#entries.push([at, looked]);
  }

  /** Returns the first position at which a matcher needed text after `stop`, or `stop` if there is none. */
  firstBeyond(stop: number): number {
    const least = stop - DECIDED_WITHIN;
    return this.#entries.find(([at, looked]) => looked > stop && at >= least)?.[0] ?? stop;
  }
}

/** Returns how a credential that ends near the end of the text may continue. */
function tailAt(text: string, end: number, short: Tail | "more"): Tail | undefined {
  if (short === "more") return undefined;
  if (short === "key lines") return end + KEY_GAP_MAX + KEY_LINE_MIN > text.length ? short : undefined;
  return /^\\*$/.test(text.slice(end)) ? short : undefined;
}

/** Remembers the last few sequences of each kind, so that a matcher does not read them again. */
class Runs {
  readonly #from = new Int32Array(KINDS * RUNS_KEPT).fill(-1);
  readonly #to = new Int32Array(KINDS * RUNS_KEPT).fill(-1);
  readonly #oldest = new Uint8Array(KINDS);

  /** Returns the end of the sequence of one kind that contains this position, if it is known. */
  endAt({ index }: Kind, at: number): number | undefined {
    const first = index * RUNS_KEPT;
    for (let slot = first; slot < first + RUNS_KEPT; slot += 1) {
      const [begin = -1, end = -1] = [this.#from[slot], this.#to[slot]];
      if (at >= begin && at < end) return end;
    }
    return undefined;
  }

  keep({ index }: Kind, from: number, to: number): void {
    const oldest = this.#oldest[index] ?? 0;
    this.#from[index * RUNS_KEPT + oldest] = from;
    this.#to[index * RUNS_KEPT + oldest] = to;
    this.#oldest[index] = (oldest + 1) % RUNS_KEPT;
  }
}

export class Scan {
  readonly #text: string;
  readonly #work: Work;
  readonly #open: boolean;
  readonly #behindMask: boolean;
  /** Made by the first sequence: most texts are short and have none. */
  #runs: Runs | undefined;
  #floor = 0;
  #start = 0;
  /** Kind of characters that a matcher was reading when the text ended before it could decide. */
  #short: Tail | "more" | undefined;
  /** Last position that a matcher has examined. */
  #looked = 0;

  /**
   * `open`: treat a credential that ends with the text as complete. `behindMask`: the text directly follows a
   * mask.
   */
  constructor(text: string, work: Work, open: boolean, behindMask = false) {
    this.#text = text;
    this.#work = work;
    this.#open = open;
    this.#behindMask = behindMask;
  }

  maskText(): string {
    const { text, floor } = this.search(0, false);
    return floor === 0 ? this.#text : text;
  }

  /**
   * Finds credentials that begin at `from` or later. With `goesOn` more text follows, and the search stops
   * where the result depends on it.
   */
  search(from: number, goesOn: boolean): Scanned {
    const text = this.#text;
    const { length } = text;
    this.#work.steps += length - from;
    const farSighted = new FarSighted();
    let [out, shown, at] = ["", from, from];
    while (at < length) {
      const code = text.charCodeAt(at);
      const start = code < 128 ? STARTS[code] : 0;
      if (start === 0) {
        at += 1;
        continue;
      }
      this.#short = undefined;
      this.#looked = 0;
      const end = start === 1 ? this.#word(at, code) : this.#mark(at, code);
      const short = goesOn ? this.#short : undefined;
      if (short !== undefined && length - at <= DECIDED_WITHIN) break;
      if (
        end === NONE ||
        (this.#text.startsWith(MASK, this.#start) && isMask(this.#text.slice(this.#start, end)))
      ) {
        if (goesOn && this.#looked > at + 1) farSighted.add(at, this.#looked);
        at += 1;
      } else {
        const hidden = text.slice(this.#start, end);
        out += text.slice(shown, this.#start);
        this.#floor = end;
        shown = end;
        at = end;
        const tail = short === undefined ? undefined : tailAt(text, end, short);
        if (tail !== undefined) return { text: out + MASK, stop: end, floor: end, tail, hidden };
        out += maskOf(hidden);
      }
    }
    const stop = Math.max(shown, farSighted.firstBeyond(at));
    return { text: out + text.slice(shown, stop), stop, floor: this.#floor };
  }

  /** Returns the end of the sequence of one kind that begins at this position or contains it. */
  runEnd(of: Kind, from: number): number {
    this.#work.steps += 1;
    const known = this.#runs?.endAt(of, from);
    const end = known ?? this.#readRun(of, from);
    if (end === this.#text.length) this.#short = of;
    this.#looked = Math.max(this.#looked, end + 1);
    return end;
  }

  #readRun(of: Kind, from: number): number {
    const text = this.#text;
    let at = from;
    while (at < text.length && isOf(of, text.charCodeAt(at))) at += 1;
    this.#work.steps += at - from;
    if (at > from) {
      this.#runs ??= new Runs();
      this.#runs.keep(of, from, at);
    }
    return at;
  }

  has(part: string, at: number): boolean {
    const text = this.#text;
    if (at + part.length > text.length && part.startsWith(text.slice(at))) this.#needsMore();
    const found = text.startsWith(part, at);
    // Count only a found part as examined: a part that is not found cannot match after a later mask either.
    if (found) this.#looked = Math.max(this.#looked, at + part.length);
    return found;
  }

  is(of: Kind, at: number): boolean {
    if (at >= this.#text.length) this.#needsMore();
    this.#looked = Math.max(this.#looked, at + 1);
    return at < this.#text.length && isOf(of, this.#text.charCodeAt(at));
  }

  /** Records that the decision of a matcher depends on further text. */
  #needsMore(): void {
    this.#short ??= "more";
  }

  /** Returns whether a sequence ends only because the text ends there. */
  runsOut(end: number): boolean {
    return this.#open && end === this.#text.length;
  }

  /** Returns whether a digit follows, with only characters of this kind before it. */
  digitWithin(plain: Kind, from: number): boolean {
    const end = this.runEnd(plain, from);
    return end - from <= DIGIT_WITHIN && this.is(DIGIT, end);
  }

  #codeBefore(at: number): number {
    if (at === this.#floor) return at === 0 && !this.#behindMask ? -1 : CODE_BEHIND_MASK;
    return this.#text.charCodeAt(at - 1);
  }

  /** Returns up to `most` characters before a position, but none across a mask. */
  #before(at: number, most: number): string {
    this.#work.steps += most;
    return this.#text.slice(Math.max(this.#floor, at - most), at);
  }

  #noteMatch(start: number, end: number): number {
    this.#start = start;
    return end;
  }

  /** Matches patterns that begin with this letter. */
  #word(at: number, code: number): number {
    const before = this.#codeBefore(at);
    if (before >= 0 && isOf(ALNUM, before)) return NONE;
    for (const [begin, body] of byFirst.get(code) ?? []) {
      this.#work.steps += 1;
      if (!this.has(begin, at)) continue;
      const end = body(this, at + begin.length);
      if (end !== NONE) return this.#noteMatch(at, end);
    }
    if (code === X && this.has("xox", at) && this.is(LOWER, at + 3) && this.has("-", at + 4)) {
      const end = run(DASHED, 10)(this, at + 5);
      if (end !== NONE) return this.#noteMatch(at, end);
    }
    return before === UNDERSCORE ? NONE : this.#wholeWord(at);
  }

  /** Matches patterns that begin with this letter, unless an underscore precedes it. */
  #wholeWord(at: number): number {
    for (const hook of HOOKS) if (this.has(hook, at)) return this.#run(PATH, at + hook.length, 20);
    if (this.has(SLACK_HOOK, at)) {
      const from = at + SLACK_HOOK.length;
      const end = this.runEnd(LOWER, from);
      const isHook = end > from && end - from <= 20 && this.has("/", end);
      return isHook ? this.#run(PATH, end + 1, 20) : NONE;
    }
    const word = this.#text.slice(at, at + BEARER_WORD.length).toLowerCase();
    if (at + BEARER_WORD.length > this.#text.length && BEARER_WORD.startsWith(word)) this.#needsMore();
    if (word !== BEARER_WORD) return NONE;
    const from = this.#skipBlanks(at + 6);
    if (from === NONE || from === at + 6 || !this.digitWithin(BEARER_PLAIN, from)) return NONE;
    return this.#run(BEARER, from, 12);
  }

  #run(of: Kind, from: number, least: number): number {
    const end = this.runEnd(of, from);
    return end - from >= least ? this.#noteMatch(from, end) : NONE;
  }

  /** Skips up to three blanks. Returns NONE if there are more. */
  #skipBlanks(from: number): number {
    const end = this.runEnd(BLANK, from);
    return end - from <= BLANKS_MAX ? end : NONE;
  }

  /** Matches patterns that contain `:`, `=` or `-`. */
  #mark(at: number, code: number): number {
    if (code === DASH) return this.#dashes(at);
    if (code === COLON) {
      const found = this.has("://", at) ? this.#address(at) : this.#botToken(at);
      if (found !== NONE) return found;
    }
    return this.#assignment(at, code === COLON);
  }

  /** Matches user:password@ in a URL. Masks only the password. */
  #address(at: number): number {
    if (!SCHEME_END.test(this.#before(at, LOOK_BEHIND_MAX))) return NONE;
    const userEnd = this.runEnd(USER, at + 3);
    if (userEnd - at > 256 || !this.has(":", userEnd)) return NONE;
    const from = userEnd + 1;
    const port = this.runEnd(DIGIT, from);
    if (port > from && port - from <= 5 && (this.has("?", port) || this.has("#", port))) return NONE;
    const end = this.runEnd(UNTIL_SLASH, from);
    if (this.runsOut(end)) return this.#noteMatch(from, end);
    for (let last = Math.min(end - 1, from + 512); last > from; last -= 1) {
      this.#work.steps += 1;
      if (this.has("@", last)) return this.#noteMatch(from, last);
    }
    return NONE;
  }

  /**
   * Matches tokens of Telegram bots, also in URLs after the word "bot". The number of the bot is public and
   * is not masked.
   */
  #botToken(at: number): number {
    const digits = /[0-9]+$/.exec(this.#before(at, 11))?.[0].length ?? 0;
    if (digits < 8 || digits > 10) return NONE;
    if (/^[0-9a-f]{8}-/.test(this.#text.slice(at + 1, at + 10))) return NONE;
    const end = this.runEnd(WORD, at + 1);
    return end - at > 30 ? this.#noteMatch(at + 1, end) : NONE;
  }

  /** Matches private keys, and `--name value`. */
  #dashes(at: number): number {
    if (!this.has("--", at)) return NONE;
    if (this.has("-----BEGIN ", at)) return this.#keyBlock(at);
    const end = this.runEnd(WORDLESS_DIGITS, at);
    const from = this.#skipBlanks(end);
    if (from === NONE || from === end || !NAME_END.test(this.#before(end, NAME_CHARS_MAX))) return NONE;
    return this.#unlikeProse(from) ? this.#value(from, 8) : NONE;
  }

  /** Matches a block with a key, complete or cut off at the end. Masked text cannot be part of a block. */
  #keyBlock(at: number): number {
    const nameFrom = at + "-----BEGIN ".length;
    const nameEnd = this.runEnd(KEY_LINE, nameFrom);
    if (nameEnd - nameFrom > 60 || !KEY_NAME.test(this.#text.slice(nameFrom, nameEnd))) return NONE;
    if (!this.has("-----", nameEnd)) return NONE;
    const from = nameEnd + 5;
    const most = Math.min(this.#text.length, from + KEY_BLOCK_CHARS_MAX + 1);
    let end = from;
    while (end < most && !this.has("-----", end) && !this.has(MASK, end)) end += 1;
    this.#work.steps += end - from;
    this.#looked = Math.max(this.#looked, end + 1);
    if (end === this.#text.length) this.#needsMore();
    if (this.runsOut(end)) return this.#noteMatch(at, end);
    if (this.has("-----END ", end)) {
      const lastEnd = this.runEnd(KEY_LINE, end + 9);
      if (lastEnd - end <= 70 && this.has("-----", lastEnd)) return this.#noteMatch(at, lastEnd + 5);
    }
    const linesEnd = this.#keyLines(from);
    return linesEnd > from ? this.#noteMatch(at, linesEnd) : NONE;
  }

  /** Returns the end of consecutive lines of a key. */
  #keyLines(from: number): number {
    let end = from;
    for (;;) {
      const gap = KEY_GAP.exec(this.#text.slice(end, end + KEY_GAP_MAX))?.[0].length ?? 0;
      const lineEnd = this.runEnd(BASE64, end + gap);
      if (lineEnd + KEY_GAP_MAX > this.#text.length) this.#short = "key lines";
      if (gap === 0 || lineEnd - end - gap < KEY_LINE_MIN) return end;
      end = lineEnd;
    }
  }

  /** Matches the value after a name and `:` or `=`. */
  #assignment(at: number, isColon: boolean): number {
    const before = /[ \t]{0,3}$/.exec(this.#before(at, BLANKS_MAX))?.[0].length ?? 0;
    let nameEnd = at - before;
    let style: NameStyle = "plain";
    if (QUOTES.includes(this.#codeBefore(nameEnd))) {
      nameEnd -= 1;
      style = "quoted";
      for (let most = 3; most > 0 && this.#codeBefore(nameEnd) === BACKSLASH_CODE; most -= 1) {
        nameEnd -= 1;
        style = "escaped";
      }
    }
    const name = this.#before(nameEnd, NAME_CHARS_MAX);
    const from = this.#skipBlanks(at + 1);
    if (from === NONE) return NONE;
    if (NAME_END.test(name)) return this.#matchNamed(at, from, style, isColon);
    if (style === "escaped") return NONE;
    if (/authorization$/i.test(name)) return this.#header(from);
    if (isColon && before === 0 && /(?<!\w)cookie$/i.test(name)) return this.#cookie(from);
    return NONE;
  }

  #matchNamed(at: number, from: number, style: NameStyle, isColon: boolean): number {
    if (style === "escaped") return isColon ? this.#escapedValue(from) : NONE;
    if (QUOTES.includes(this.#text.charCodeAt(from))) return this.#quotedValue(from);
    if (style === "quoted") return NONE;
    if (from === at + 1 && !isColon) return this.#value(from, 6);
    return this.#unlikeProse(from) ? this.#value(from, 8) : NONE;
  }

  /**
   * Returns whether a text is a credential rather than prose: it contains a digit, or is longer than a word.
   */
  #unlikeProse(from: number): boolean {
    return this.digitWithin(UNDIGITAL, from) || this.runEnd(VALUE, from) - from >= 24;
  }

  /** Matches a value without quotation marks. Variables and function calls are not values. */
  #value(from: number, least: number): number {
    if (/[$<{(%]/.test(this.#text.charAt(from))) return NONE;
    const runEnd = this.runEnd(VALUE, from);
    let end = runEnd;
    // A backslash at the end belongs to the following quotation mark.
    while (end > from && this.#text.charCodeAt(end - 1) === BACKSLASH_CODE) end -= 1;
    this.#work.steps += runEnd - end;
    if (end - from < least) return NONE;
    return end - from <= VALUE_CHARS_MAX && this.has("(", end) ? NONE : this.#noteMatch(from, end);
  }

  /**
   * Matches a quoted value on one line. If the value is very long, masks it up to a limit without looking for
   * its end.
   */
  #quotedValue(at: number): number {
    const text = this.#text;
    const quote = text.charCodeAt(at);
    const from = at + 1;
    const most = Math.min(text.length, from + QUOTED_CHARS_MAX + 1);
    let end = from;
    for (; end < most; end += 1) {
      const code = text.charCodeAt(end);
      if (code === quote || code === NEWLINE) break;
      if (code === BACKSLASH_CODE && text.charCodeAt(end + 1) !== NEWLINE) end += 1;
    }
    this.#work.steps += end - from;
    this.#looked = Math.max(this.#looked, end + 1);
    if (end >= text.length) this.#needsMore();
    if (end > from && end < most && text.charCodeAt(end) === quote) return this.#noteMatch(from, end);
    if (this.#open && end >= text.length) return this.#noteMatch(from, text.length);
    const far = this.runEnd(UNQUOTED, from);
    return far - from >= QUOTED_CHARS_MAX ? this.#noteMatch(from, far) : NONE;
  }

  /** Matches a value inside a JSON string, in which quotation marks are escaped. */
  #escapedValue(from: number): number {
    const quoteAt = this.runEnd(BACKSLASH, from);
    if (quoteAt === from || quoteAt - from > 3) return NONE;
    if (!QUOTES.includes(this.#text.charCodeAt(quoteAt))) return NONE;
    return this.#run(ESCAPED_TEXT, quoteAt + 1, 1);
  }

  /**
   * Matches the value of an authorization header. Prose can follow the scheme as well ("bearer instruments"),
   * so a plain word is not a credential.
   */
  #header(from: number): number {
    this.#work.steps += AUTH_SCHEME_MAX;
    if (from + AUTH_SCHEME_MAX > this.#text.length) this.#needsMore();
    const scheme = AUTH_SCHEME.exec(this.#text.slice(from, from + AUTH_SCHEME_MAX))?.[0].length;
    if (scheme === undefined) return NONE;
    const at = from + scheme;
    const plainEnd = this.runEnd(HEADER_PLAIN, at);
    const isPlain = plainEnd - at > DIGIT_WITHIN || !(this.is(UPPER, plainEnd) || this.has("=", plainEnd));
    return isPlain ? NONE : this.#run(HEADER, at, 8);
  }

  /** Matches a cookie header. Masks everything after the first name. */
  #cookie(from: number): number {
    const at = QUOTES.includes(this.#text.charCodeAt(from)) ? from + 1 : from;
    const nameEnd = this.runEnd(FIELD, at);
    if (nameEnd === at || nameEnd - at > 100 || !this.has("=", nameEnd)) return NONE;
    return this.is(BLANK, nameEnd + 1) ? NONE : this.#run(COOKIE, nameEnd + 1, 6);
  }
}

/** Maximum number of passes over a text. Another pass is needed if a new mask completes another match. */
export const PASSES_MAX = 8;

/**
 * Returns the text with everything masked that looks like a credential. With `open` more text follows, so an
 * incomplete credential at the end is masked as well.
 */
export function maskShapes(text: string, work: Work, open: boolean): string {
  let before = text;
  for (let passes = 1; ; passes += 1) {
    const masked = new Scan(before, work, open).maskText();
    if (masked === before || passes === PASSES_MAX) return masked;
    before = masked;
  }
}
