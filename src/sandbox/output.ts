// Keeps a limited part of a command's output.
// O1: memory is limited: the beginning and the end are kept, the middle is only counted, and the text says
// how much is missing.

/** Keeps the beginning and the end of an output, each up to half of `maxBytes`. */
export class Output {
  readonly #halfBytes: number;
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  totalBytes = 0;

  constructor(maxBytes: number) {
    this.#halfBytes = Math.max(1, Math.floor(maxBytes / 2));
  }

  add(chunk: Buffer): void {
    this.totalBytes += chunk.length;
    const toHead = chunk.subarray(0, this.#halfBytes - this.#headBytes);
    if (toHead.length > 0) this.#head.push(Buffer.from(toHead));
    this.#headBytes += toHead.length;
    const toTail = chunk.subarray(toHead.length);
    if (toTail.length === 0) return;
    this.#tail.push(Buffer.from(toTail.subarray(-this.#halfBytes)));
    this.#tailBytes += Math.min(toTail.length, this.#halfBytes);
    if (this.#tailBytes > 4 * this.#halfBytes) this.#shrink();
  }

  #shrink(): Buffer {
    const last = Buffer.from(Buffer.concat(this.#tail).subarray(-this.#halfBytes));
    this.#tail = [last];
    this.#tailBytes = last.length;
    return last;
  }

  /** Returns the text, with a line in place of the omitted part. Invalid bytes become `\uFFFD`. */
  read(): { text: string; truncated: boolean } {
    const head = Buffer.concat(this.#head);
    const tail = this.#shrink();
    const leftOut = this.totalBytes - head.length - tail.length;
    if (leftOut === 0) return { text: readable(Buffer.concat([head, tail])), truncated: false };
    const first = readable(head.subarray(0, characterEnd(head)));
    // The tail may begin inside a character.
    let at = 0;
    while (at < 3 && isContinuation(tail[at])) at += 1;
    const last = readable(tail.subarray(at));
    return { text: `${first}\n[… ${leftOut} bytes left out …]\n${last}`, truncated: true };
  }
}

const readable = (bytes: Buffer): string => bytes.toString("utf8").replaceAll("\0", "\uFFFD");

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Returns the number of bytes without an incomplete last character. */
function characterEnd(bytes: Buffer): number {
  let lead = bytes.length - 1;
  while (lead > bytes.length - 4 && isContinuation(bytes[lead])) lead -= 1;
  const byte = bytes[lead] ?? 0;
  const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
  return lead + length > bytes.length ? Math.max(0, lead) : bytes.length;
}
