// Owns how the texts of live events, each of which is whole, become the pieces of a stream, which only grows.
// Pure.
// TX1: what was sent is never taken back: a text that begins anew is continued where it says the same, else
//      it follows behind a blank line.
// TX2: what may still become a credential is held back, so that no half of one leaves before it can be masked
//      (I14).

import type { Redactor } from "../core/redact.ts";

const BREAK = "\n\n";
const FIRST_OF_WORD = "!";
const LAST_OF_WORD = "~";
const FIRST_HALF = /[\uD800-\uDBFF]/;

/** Where the last word begins that may go on; behind a blank, or a letter that no credential has: the end. */
function openFrom(text: string): number {
  let at = text.length;
  while (at > 0 && text.charAt(at - 1) >= FIRST_OF_WORD && text.charAt(at - 1) <= LAST_OF_WORD) at -= 1;
  // No half of a character that takes two.
  return FIRST_HALF.test(text.charAt(at - 1)) ? at - 1 : at;
}

function commonLength(a: string, b: string): number {
  let at = 0;
  while (at < a.length && at < b.length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  return at;
}

/** Turns the texts of one run into pieces. */
export class TextPieces {
  /** Everything that has left. */
  #whole = "";
  /** The masked text of the message under way, as far as it has left. */
  #sent = "";
  /** The last text of the message under way, as it came. */
  #heard = "";
  #closed = false;
  readonly #redactor: Redactor;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  get whole(): string {
    return this.#whole;
  }

  /** The next piece, after this text; "" when nothing can leave yet. */
  next(text: string): string {
    return this.#take(text, this.#redactor.mask(text.slice(0, openFrom(text))), false);
  }

  /** What was held back of a message that is complete: the next text is another one's. */
  close(): string {
    const rest =
      this.#heard === "" || this.#closed ? "" : this.#goOn(this.#heard, this.#redactor.mask(this.#heard));
    this.#closed = this.#heard !== "";
    return rest;
  }

  /** The last piece: the run has ended with this text. */
  end(text: string): string {
    return this.#take(text, this.#redactor.mask(text), true);
  }

  #take(text: string, masked: string, last: boolean): string {
    const goesOn = !this.#closed && (text.startsWith(this.#heard) || masked.startsWith(this.#sent));
    if (goesOn) return this.#goOn(text, masked);
    if (masked === "") return "";
    // So far it says what was said before: a run was resumed, and writes its message again.
    if (!this.#closed && !last && this.#sent.startsWith(masked)) return "";
    return this.#begin(text, masked);
  }

  #goOn(text: string, masked: string): string {
    this.#heard = text;
    if (this.#sent.startsWith(masked)) return "";
    // What has left already stays, even where the mask now covers it.
    const piece = masked.slice(commonLength(this.#sent, masked));
    this.#sent = masked;
    this.#whole += piece;
    return piece;
  }

  #begin(text: string, masked: string): string {
    const piece = `${this.#whole === "" ? "" : BREAK}${masked}`;
    this.#heard = text;
    this.#sent = masked;
    this.#closed = false;
    this.#whole += piece;
    return piece;
  }
}
