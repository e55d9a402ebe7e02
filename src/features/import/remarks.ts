// Collects an import's remarks about skipped or changed data, counted by kind. Their number is limited.
// Remarks contain neither secrets nor terminal control characters (I14): values are never recorded, and names
// are redacted.

import { Redactor } from "../../core/text/redact/redact.ts";

const KINDS_MAX = 120;
const EXAMPLES_MAX = 5;
const EXAMPLE_CHARS_MAX = 160;

/** One kind of remark, its count, and the first examples. */
export interface Remark {
  readonly what: string;
  readonly count: number;
  readonly examples: readonly string[];
}

export class Remarks {
  readonly #kinds = new Map<string, { count: number; examples: string[] }>();
  #others = 0;

  /**
   * Adds a remark. `what`: a fixed sentence. `example`: the name of the file or the setting that the remark
   * is about.
   */
  note(what: string, example?: string, count = 1): void {
    const known = this.#kinds.get(what);
    if (known === undefined && this.#kinds.size >= KINDS_MAX) {
      this.#others += count;
      return;
    }
    const kind = known ?? { count: 0, examples: [] };
    kind.count += count;
    const shown = example === undefined ? undefined : shorten(example);
    if (shown !== undefined && kind.examples.length < EXAMPLES_MAX && !kind.examples.includes(shown)) {
      kind.examples.push(shown);
    }
    this.#kinds.set(what, kind);
  }

  list(): Remark[] {
    const listed = [...this.#kinds].map(([what, { count, examples }]) => ({ what, count, examples }));
    return this.#others === 0
      ? listed
      : [...listed, { what: "other remarks", count: this.#others, examples: [] }];
  }
}

/** Shortens and redacts a name of the source. */
function shorten(text: string): string {
  // No secrets are known to this redactor, because the source's values are not registered.
  const shown = new Redactor([]).cut(text, EXAMPLE_CHARS_MAX);
  return shown.toWellFormed().replace(/[\p{Cc}\u2028\u2029]/gu, "\u{FFFD}");
}
