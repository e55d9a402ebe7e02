// Owns the newest lines of this process's log, in memory, as they were written: secrets are masked in them.
// LT1: it is bounded, in lines and in characters: the oldest go first. No file is written.
// LT2: lines are numbered from 1; a reader sees by the numbers whether it has missed some.

const LINES_MAX = 2_000;
const CHARS_MAX = 4_000_000;
/** Of one line; the rest of it is on stderr only. */
const LINE_MAX_CHARS = 16_000;

export interface LogTailLine {
  readonly seq: number;
  /** A line of JSON; one that was too long is cut off, and is none any more. */
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

  /** Oldest first. */
  lines(): readonly LogTailLine[] {
    return this.#lines;
  }

  /** The number of the newest line; 0: there was none. */
  last(): number {
    return this.#seq;
  }
}
