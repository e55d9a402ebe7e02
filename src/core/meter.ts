// Counts the values of foreign JSON before a parser reads it. A parser blocks the event loop for seconds when
// a text of some MB has millions of values; the length alone says little, because a picture is one value.

/** Maximum number of brackets, commas and colons outside of texts: about 100 ms of parsing at worst. */
export const JSON_MARKS_MAX = 250_000;
const TOO_MANY_VALUES = `the JSON has more than ${JSON_MARKS_MAX} values: send less at once`;

const [NEWLINE, RETURN, QUOTE, BACKSLASH] = [10, 13, 34, 92];
const IS_MARK = new Uint8Array(256);
for (const mark of "[{,:") IS_MARK[mark.charCodeAt(0)] = 1;

/** Returns whether a byte outside of a text counts as a value. */
export const isMark = (byte: number): boolean => IS_MARK[byte] === 1;

/** Ends of a message: of the whole body, of a line, or the empty line after an event of a stream. */
export type MessageEnd = "body" | "line" | "event";

export class JsonMeter {
  readonly #end: MessageEnd;
  readonly #bytesMax: number;
  #bytes = 0;
  #marks = 0;
  #isQuoted = false;
  #isEscaped = false;
  #lineIsEmpty = true;

  constructor(end: MessageEnd, bytesMax = Number.POSITIVE_INFINITY) {
    this.#end = end;
    this.#bytesMax = bytesMax;
  }

  /** Adds a piece. Returns a description of the limit that a message exceeds, if any. */
  add(piece: Uint8Array): string | undefined {
    for (let at = 0; at < piece.length; ) {
      at = this.#addLine(piece, at);
      if (this.#marks > JSON_MARKS_MAX) return TOO_MANY_VALUES;
      if (this.#bytes > this.#bytesMax) return `the answer has more than ${this.#bytesMax} bytes`;
      // A text in JSON has no line break, so a quote in a line of another kind hides nothing in the next.
      if (this.#end !== "body" && piece[at - 1] === NEWLINE) {
        this.#isQuoted = false;
        this.#isEscaped = false;
        if (this.#end === "line" || this.#lineIsEmpty) {
          this.#bytes = 0;
          this.#marks = 0;
        }
        this.#lineIsEmpty = true;
      }
    }
    return undefined;
  }

  /** Adds the bytes up to a line break that matters, and returns the index behind it. */
  #addLine(piece: Uint8Array, from: number): number {
    // Fields would make this loop several times slower than these variables.
    let [marks, isQuoted, isEscaped] = [this.#marks, this.#isQuoted, this.#isEscaped];
    const lineEnd = this.#end === "body" ? undefined : NEWLINE;
    let at = from;
    for (; at < piece.length; at += 1) {
      const byte = piece[at] as number;
      if (byte === lineEnd) break;
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) isQuoted = !isQuoted;
      else if (byte === RETURN) isQuoted = false;
      else if (!isQuoted) marks += IS_MARK[byte] as number;
    }
    [this.#marks, this.#isQuoted, this.#isEscaped] = [marks, isQuoted, isEscaped];
    this.#lineIsEmpty &&= at === from || (at === from + 1 && piece[from] === RETURN);
    const end = Math.min(at + 1, piece.length);
    this.#bytes += end - from;
    return end;
  }
}

/** Returns a body that fails when a message in it exceeds a limit. */
export function meteredBody(body: ReadableStream<Uint8Array>, meter: JsonMeter): ReadableStream<Uint8Array> {
  const check = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      const problem = meter.add(piece);
      if (problem !== undefined) throw new Error(problem);
      controller.enqueue(piece);
    },
  });
  return body.pipeThrough(check);
}
