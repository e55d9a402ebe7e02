// Splits the live text of a run into the pieces of a stream, which can only grow.
// TX1: sent text is never taken back. If a message starts again with the same text, the stream continues
// after it. If the new text differs, all of it follows after a blank line.
// TX2: the start of a possible credential is held back, so that it can be redacted whole (I14).

import type { MaskStream, Redactor } from "../../core/text/redact/redact.ts";
import { joinedDeltas, LongText, type TextDelta } from "../../core/text/text-delta.ts";

const BREAK = "\n\n";

/** Splits the texts of one run into pieces. */
export class TextPieces {
  readonly #redactor: Redactor;
  /** The text sent so far. */
  readonly #whole = new LongText();
  /** The text of the current message, as received. */
  #heard = new LongText();
  /** The text of a message before it started again. Undefined once the new text is longer or differs. */
  #earlier: string | undefined;
  #mask: MaskStream;
  #closed = false;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
    this.#mask = redactor.stream();
  }

  get whole(): string {
    return this.#whole.text;
  }

  /** Returns the next piece after this change; "" when nothing can be sent yet. */
  next(delta: TextDelta): string {
    if (delta.offset === this.#heard.length && !this.#closed) return this.#goOn(delta.text);
    const before = this.#closed ? "" : this.#heard.text;
    const text = joinedDeltas({ offset: 0, text: before }, delta)?.text;
    // A part is missing, so wait: the whole text comes with the end of the run.
    return text === undefined ? "" : this.#anew(text);
  }

  /**
   * Returns the rest of a complete message, whose whole text is `text`. The next text belongs to another
   * message.
   */
  close(text?: string): string {
    if (this.#closed && (text ?? "") === "") return "";
    const rest = this.#take(text ?? this.#heard.text) + this.#send(this.#mask.end());
    this.#closed = this.#heard.length > 0;
    return rest;
  }

  /** Returns the last piece: the run has ended with this text. */
  end(text: string): string {
    return this.#take(text) + (this.#closed ? "" : this.#send(this.#mask.end()));
  }

  /** Handles the whole text of a message. */
  #take(text: string): string {
    const isSame = !this.#closed && this.#heard.begins(text);
    const piece = isSame ? this.#goOn(text.slice(this.#heard.length)) : this.#anew(text);
    return piece + (this.#earlier === undefined ? "" : this.#other());
  }

  #goOn(text: string): string {
    const from = this.#heard.length;
    this.#heard.append(text);
    if (this.#earlier === undefined) return this.#send(this.#mask.push(text));
    const known = this.#earlier.slice(from);
    if (known.startsWith(text)) return "";
    if (!text.startsWith(known)) return this.#other();
    this.#earlier = undefined;
    return this.#send(this.#mask.push(text.slice(known.length)));
  }

  /** Handles a message that started again. */
  #anew(text: string): string {
    const earlier = this.#closed ? "" : (this.#earlier ?? this.#heard.text);
    this.#heard = new LongText();
    this.#earlier = earlier;
    if (this.#closed && text === "") return "";
    if (this.#closed) return this.#other(text);
    return this.#goOn(text);
  }

  /** Handles a text that differs from the sent one. */
  #other(text = this.#heard.text): string {
    this.#heard = new LongText(text);
    this.#earlier = undefined;
    this.#closed = false;
    const rest = this.#mask.end();
    this.#mask = this.#redactor.stream();
    const masked = this.#mask.push(text);
    const lead = this.#whole.length + rest.length === 0 || text === "" ? "" : BREAK;
    return this.#send(rest + lead + masked);
  }

  #send(piece: string): string {
    this.#whole.append(piece);
    return piece;
  }
}
