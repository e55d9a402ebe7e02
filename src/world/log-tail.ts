// Keeps the newest lines of this process's log in memory, as they were written: with secrets redacted.
// LT1: the number of lines and characters is limited; the oldest lines are evicted. No file is written.
// Lines are numbered from 1, so that a reader can detect missing ones.

const LINES_MAX = 2_000;
const CHARS_MAX = 4_000_000;
/** Maximum characters of a line; the rest is only on stderr. */
const LINE_MAX_CHARS = 16_000;

export interface LogTailLine {
  readonly seq: number;
  /** A line of JSON. A line that was too long is cut, so it is not valid JSON. */
  readonly text: string;
}

export class LogTail {
  readonly #lines: LogTailLine[] = [];
  #chars = 0;
  #seq = 0;

  write(line: string): void {
    const text = line.trimEnd().slice(0, LINE_MAX_CHARS);
    this.#seq += 1;
    this.#lines.push({ seq: this.#seq, text });
    this.#chars += text.length;
    while (this.#lines.length > LINES_MAX || this.#chars > CHARS_MAX) {
      this.#chars -= this.#lines.shift()?.text.length ?? 0;
    }
  }

  /** Returns the lines, oldest first. */
  lines(): readonly LogTailLine[] {
    return this.#lines;
  }

  /** Returns the number of the newest line, or 0 if there is none. */
  last(): number {
    return this.#seq;
  }
}
