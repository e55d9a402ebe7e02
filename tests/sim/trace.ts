// The trace of a story: its lines of text, and its first violation.

/** A broken invariant. It ends the story. */
export class Violation extends Error {
  readonly invariant: string;
  constructor(invariant: string, text: string) {
    super(`${invariant}: ${text}`);
    this.invariant = invariant;
  }
}

/** Maximum number of lines in memory; later ones are dropped. */
const LINES_MAX = 20_000;

export class Trace {
  readonly lines: string[] = [];
  readonly #now: () => number;
  readonly #startMs: number;
  #mark = 0x811c9dc5;
  #count = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#startMs = now();
  }

  add(text: string): void {
    const line = `${this.#now() - this.#startMs}ms ${text}`;
    for (let at = 0; at < line.length; at += 1) {
      this.#mark = Math.imul(this.#mark ^ line.charCodeAt(at), 0x01000193);
    }
    this.#count += 1;
    if (this.lines.length < LINES_MAX) this.lines.push(line);
  }

  /** Returns a hash of all lines. */
  mark(): string {
    return `${this.#count}-${(this.#mark >>> 0).toString(16)}`;
  }
}
