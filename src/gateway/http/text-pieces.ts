// Splits the live text of a run into the pieces of a stream, which can only grow.
// TX1: sent text is never taken back. If a message starts again with the same text, the stream continues
// after it. If the new text differs, all of it follows after a blank line.
// TX2: the start of a possible credential is held back, so that it can be redacted whole (I14).
// TX3: each message is sent once, whether its tool calls begin before or after it is stored.

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
  /** Complete texts whose messages are not stored yet. */
  #unstored: string[] = [];

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
   * Returns the rest of a message that has tool calls. The next text belongs to another message. `text`: the
   * whole text of the message, which was stored. Absent: a call begins, so the text that was heard is whole.
   */
  close(text?: string): string {
    if (text === undefined) return this.#closed ? "" : this.#pause();
    // The text that was heard, if any, belongs to another message.
    if (text === "") return "";
    const at = this.#unstored.indexOf(text);
    if (at < 0) return this.#finish(text);
    this.#unstored.splice(0, at + 1);
    return "";
  }

  /** The last message was stored. It is a message of its own, even if the one before has the same text. */
  last(): void {
    if (this.#closed) this.#heard = new LongText();
  }

  /** Returns the last piece: the run has ended with this text. */
  end(text: string): string {
    // The run ended after a tool call, so its text is that of the message before.
    if (this.#closed && this.#heard.is(text)) return "";
    return this.#take(text) + (this.#closed ? "" : this.#send(this.#mask.end()));
  }

  #pause(): string {
    const text = this.#heard.text;
    const rest = this.#finish(text);
    if (text !== "") this.#unstored.push(text);
    return rest;
  }

  #finish(text: string): string {
    const rest = this.#take(text) + this.#send(this.#mask.end());
    this.#closed = this.#heard.length > 0;
    return rest;
  }

  /** Handles the whole text of a message. */
  #take(text: string): string {
    const isSame = !this.#closed && this.#heard.begins(text);
    const piece = isSame ? this.#goOn(text.slice(this.#heard.length)) : this.#anew(text);
    const isKnown = this.#earlier === undefined || this.#heard.is(this.#earlier);
    return piece + (isKnown ? "" : this.#other());
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
