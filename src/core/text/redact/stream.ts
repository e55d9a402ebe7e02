// Masks a text that arrives in pieces. However the text is split, the complete output is the same as if the
// whole text had been masked in one call, and the work is linear in the length of the text.
// Text that may become part of a credential is held back: at most about 20,500 characters, and in ordinary
// prose at most the last word.

import { BASE64, isOf, type Kind, VALUE } from "./kinds.ts";
import type { KnownValues } from "./known.ts";
import { CREDENTIAL_CHARS_MAX, MASK, maskOf } from "./mask.ts";
import { KEY_GAP, KEY_GAP_MAX, KEY_LINE_MIN, PASSES_MAX, Scan, type Tail, type Work } from "./shapes.ts";

/** Number of characters kept as context. No matcher looks back further. */
const CONTEXT_CHARS = 64;
/** Waiting text is examined again each time it has grown by one eighth. */
const GROWTH = 8;

class KnownStage {
  readonly #values: () => KnownValues;
  #rest = "";
  #covered = 0;

  constructor(values: () => KnownValues) {
    this.#values = values;
  }

  /** Returns the text that is decided after this piece. `last` means that no more text follows. */
  push(text: string, work: Work, last: boolean): string {
    const decided = this.#values().decide(this.#rest + text, work, this.#covered, last);
    this.#rest = decided.rest;
    this.#covered = decided.covered;
    return decided.text;
  }
}

/** Returns the end of the sequence of characters of this kind that begins at `from`. */
function endOf(kind: Kind, text: string, from: number): number {
  let at = from;
  while (at < text.length && isOf(kind, text.charCodeAt(at))) at += 1;
  return at;
}

/** Known end of a credential, and whether this end is final. */
type TailEnd = readonly [end: number, isDecided: boolean];

function runEnd(kind: Kind, text: string, last: boolean): TailEnd {
  const end = endOf(kind, text, 0);
  return [end, last || end < text.length];
}

/** Returns the end of the lines of a private key. */
function keyLinesEnd(text: string, last: boolean): TailEnd {
  let end = endOf(BASE64, text, 0);
  while (last || end + KEY_GAP_MAX + KEY_LINE_MIN <= text.length) {
    const gap = KEY_GAP.exec(text.slice(end, end + KEY_GAP_MAX))?.[0].length ?? 0;
    const lineEnd = endOf(BASE64, text, end + gap);
    if (gap === 0 || lineEnd - end - gap < KEY_LINE_MIN) return [end, true];
    end = lineEnd;
  }
  return [end, false];
}

/** Searches once for credentials by their shape, in a text that arrives in pieces. */
class ShapeStage {
  #context: string;
  #behindMask = false;
  #rest = "";
  #lookAgainAt = 0;
  #hasMasked = false;
  /** How the last masked credential may continue, and its beginning: all of it if it is a short one. */
  #tail: Tail | undefined;
  #hidden = "";
  #hiddenLength = 0;

  /** `context` is the preceding text. Matchers may look back at it. */
  constructor(context: string) {
    this.#context = context;
  }

  get hasMasked(): boolean {
    return this.#hasMasked;
  }

  push(text: string, work: Work, last: boolean): string {
    this.#rest += text;
    if (this.#rest.length < this.#lookAgainAt && !last) return "";
    work.steps += this.#rest.length;
    const note = this.#tail === undefined ? "" : this.#skipTail(this.#tail, last);
    if (note === undefined) return "";
    const from = this.#context.length;
    const whole = this.#context + this.#rest;
    const scan = new Scan(whole, work, false, this.#behindMask);
    const { text: masked, stop, floor, tail, hidden = "" } = scan.search(from, !last);
    this.#tail = tail;
    this.#hidden = hidden;
    this.#hiddenLength = hidden.length;
    this.#hasMasked ||= floor > 0;
    this.#rest = whole.slice(stop);
    const contextFrom = Math.max(floor, stop - CONTEXT_CHARS);
    if (contextFrom > 0) this.#behindMask = contextFrom === floor;
    this.#context = whole.slice(contextFrom, stop);
    this.#lookAgainAt = this.#rest.length + Math.floor(this.#rest.length / GROWTH);
    return note + masked;
  }

  /**
   * Removes the rest of a credential from the waiting text. Returns what follows its mask, or undefined if
   * all of that text may belong to the credential.
   */
  #skipTail(tail: Tail, last: boolean): string | undefined {
    const text = this.#rest;
    const [end, isDecided] = tail === "key lines" ? keyLinesEnd(text, last) : runEnd(tail, text, last);
    let kept = end;
    // Backslashes at the end of a value belong to the quotation mark that follows.
    while (tail === VALUE && kept > 0 && text.charAt(kept - 1) === "\\") kept -= 1;
    if (this.#hiddenLength <= CREDENTIAL_CHARS_MAX) this.#hidden += text.slice(0, kept);
    this.#hiddenLength += kept;
    this.#rest = text.slice(kept);
    this.#lookAgainAt = 0;
    if (!isDecided) return undefined;
    this.#tail = undefined;
    return maskOf(this.#hidden, this.#hiddenLength).slice(MASK.length);
  }
}

export class MaskStream {
  readonly #known: KnownStage;
  /**
   * After a stage that has masked something, another stage is added, because a mask may complete another
   * match next to it.
   */
  readonly #shapes: ShapeStage[] = [new ShapeStage("")];
  readonly #work: Work;
  /** Last characters of the text that was returned. */
  #left = "";

  /** `values` returns the values that are known at that time. `work` counts the examined characters. */
  constructor(values: () => KnownValues, work: Work) {
    this.#work = work;
    this.#known = new KnownStage(values);
  }

  /** Returns the text that is decided after this piece. */
  push(text: string): string {
    return this.#pass(text, false);
  }

  /** Ends the text, and returns the text that was held back. */
  end(): string {
    return this.#pass("", true);
  }

  #pass(text: string, last: boolean): string {
    let piece = this.#known.push(text, this.#work, last);
    for (const stage of this.#shapes) {
      if (piece === "" && !last) return "";
      piece = stage.push(piece, this.#work, last);
      const isLastStage = stage === this.#shapes.at(-1);
      if (isLastStage && stage.hasMasked && this.#shapes.length < PASSES_MAX) {
        this.#shapes.push(new ShapeStage(this.#left));
      }
    }
    this.#left = (this.#left + piece).slice(-CONTEXT_CHARS);
    return piece;
  }
}
