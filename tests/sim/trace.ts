// Owns what a story leaves to read: its lines, and the first thing in it that must not be.

/** Something that breaks an invariant. Ends the story. */
export class Violation extends Error {
  readonly invariant: string;
  constructor(invariant: string, text: string) {
    super(`${invariant}: ${text}`);
    this.invariant = invariant;
  }
}

/** Lines that are kept: a story that goes round in circles must not fill the memory. */
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

  /** Two stories with the same mark had the same lines. */
  mark(): string {
    return `${this.#count}-${(this.#mark >>> 0).toString(16)}`;
  }
}
