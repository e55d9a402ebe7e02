// Turns the live text of a run into the pieces of a stream, which only grows.
// TX1: what was sent is never taken back: a text that begins anew is continued where it says the same, else
//      it follows behind a blank line.
// TX2: what may still become a credential is held back, so that no half of one leaves before it can be masked
//      (I14).

import type { MaskStream, Redactor } from "../core/redact.ts";
import { type TextDelta, withDelta } from "../core/text-delta.ts";

const BREAK = "\n\n";

/** Turns the texts of one run into pieces. */
export class TextPieces {
  readonly #redactor: Redactor;
  /** Everything that has left. */
  #whole = "";
  /** The text of the message under way, as it came. */
  #heard = "";
  /** A message that began anew, until it says more or something else: what it said before. */
  #earlier: string | undefined;
  #mask: MaskStream;
  #closed = false;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
    this.#mask = redactor.stream();
  }

  get whole(): string {
    return this.#whole;
  }

  /** The next piece, after this change; "" when nothing can leave yet. */
  next(delta: TextDelta): string {
    if (delta.offset === this.#heard.length && !this.#closed) return this.#goOn(delta.text);
    const text = withDelta(this.#closed ? "" : this.#heard, delta);
    // A part is missing: the end of the run tells the whole.
    return text === undefined ? "" : this.#anew(text);
  }

  /** The rest of a message that is complete, and reads `text`: the next text is another one's. */
  close(text?: string): string {
    if (this.#closed && (text ?? "") === "") return "";
    const rest = this.#take(text ?? this.#heard) + this.#send(this.#mask.end());
    this.#closed = this.#heard !== "";
    return rest;
  }

  /** The last piece: the run has ended with this text. */
  end(text: string): string {
    return this.#take(text) + (this.#closed ? "" : this.#send(this.#mask.end()));
  }

  /** Takes the whole text of a message. */
  #take(text: string): string {
    const isSame = !this.#closed && text.startsWith(this.#heard);
    const piece = isSame ? this.#goOn(text.slice(this.#heard.length)) : this.#anew(text);
    return piece + (this.#earlier === undefined ? "" : this.#other());
  }

  #goOn(text: string): string {
    const from = this.#heard.length;
    this.#heard += text;
    if (this.#earlier === undefined) return this.#send(this.#mask.push(text));
    const known = this.#earlier.slice(from);
    if (known.startsWith(text)) return "";
    if (!text.startsWith(known)) return this.#other();
    this.#earlier = undefined;
    return this.#send(this.#mask.push(text.slice(known.length)));
  }

  /** The message begins again. */
  #anew(text: string): string {
    const earlier = this.#closed ? "" : (this.#earlier ?? this.#heard);
    this.#heard = "";
    this.#earlier = earlier;
    if (this.#closed && text === "") return "";
    if (this.#closed) return this.#other(text);
    return this.#goOn(text);
  }

  /** The text says something else than what has left. */
  #other(text = this.#heard): string {
    this.#heard = text;
    this.#earlier = undefined;
    this.#closed = false;
    const rest = this.#mask.end();
    this.#mask = this.#redactor.stream();
    const masked = this.#mask.push(text);
    const lead = this.#whole + rest === "" || text === "" ? "" : BREAK;
    return this.#send(rest + lead + masked);
  }

  #send(piece: string): string {
    this.#whole += piece;
    return piece;
  }
}
