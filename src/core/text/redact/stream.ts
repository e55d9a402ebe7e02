// Masks a text that comes in pieces. The output is always a prefix of the masked whole text.
// However the text is split, the complete output equals the masked whole text.
// Text that may become part of a credential is held back: at most about 20,500 characters; in ordinary
// prose at most the last word.
// RS3: the work is linear in the text, however it is split.

import { BASE64, isOf, type Kind, VALUE } from "./kinds.ts";
import type { KnownValues } from "./known.ts";
import { KEY_GAP, KEY_GAP_MAX, KEY_LINE_MIN, PASSES_MAX, Scan, type Tail, type Work } from "./shapes.ts";

/** More characters than any matcher looks back. */
const CONTEXT_CHARS = 64;
/** Waiting text is examined again after it has grown by this fraction. */
const GROWTH = 8;

class KnownStage {
  readonly #values: () => KnownValues;
  #rest = "";
  #covered = 0;

  constructor(values: () => KnownValues) {
    this.#values = values;
  }

  /** Returns the text that is decided after this piece. `last`: no text follows. */
  push(text: string, work: Work, last: boolean): string {
    const decided = this.#values().decide(this.#rest + text, work, this.#covered, last);
    this.#rest = decided.rest;
    this.#covered = decided.covered;
    return decided.text;
  }
}

/** Returns the end of a run of one kind. */
function endOf(kind: Kind, text: string, from: number): number {
  let at = from;
  while (at < text.length && isOf(kind, text.charCodeAt(at))) at += 1;
  return at;
}

/** The known end of a credential, and whether it is final. */
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

/** Searches for shapes once in a text that comes in pieces. */
class ShapeStage {
  /** The text before `#rest` that a matcher may look back at. */
  #context: string;
  #behindMask = false;
  #rest = "";
  #lookAgainAt = 0;
  #hasMasked = false;
  /** Continuation of the last masked credential. */
  #tail: Tail | undefined;

  /** `context`: the preceding text that a matcher may look back at. */
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
    if (this.#tail !== undefined && !this.#skipTail(this.#tail, last)) return "";
    const from = this.#context.length;
    const whole = this.#context + this.#rest;
    const scan = new Scan(whole, work, false, this.#behindMask);
    const { text: masked, stop, floor, tail } = scan.search(from, !last);
    this.#tail = tail;
    this.#hasMasked ||= floor > 0;
    this.#rest = whole.slice(stop);
    const contextFrom = Math.max(floor, stop - CONTEXT_CHARS);
    if (contextFrom > 0) this.#behindMask = contextFrom === floor;
    this.#context = whole.slice(contextFrom, stop);
    this.#lookAgainAt = this.#rest.length + Math.floor(this.#rest.length / GROWTH);
    return masked;
  }

  /**
   * Removes the rest of the credential from the waiting text. False: all of it may belong to the credential.
   */
  #skipTail(tail: Tail, last: boolean): boolean {
    const text = this.#rest;
    const [end, isDecided] = tail === "key lines" ? keyLinesEnd(text, last) : runEnd(tail, text, last);
    let kept = end;
    // Backslashes at the end of a value belong to the following quotation mark.
    while (tail === VALUE && kept > 0 && text.charAt(kept - 1) === "\\") kept -= 1;
    this.#rest = text.slice(kept);
    this.#lookAgainAt = 0;
    if (isDecided) this.#tail = undefined;
    return isDecided;
  }
}

/** Masks one text that comes in pieces. */
export class MaskStream {
  readonly #known: KnownStage;
  /**
   * A stage that masked something gets another stage after it: masks may turn neighbouring text into
   * credentials.
   */
  readonly #shapes: ShapeStage[] = [new ShapeStage("")];
  readonly #work: Work;
  /** End of the text that was returned. */
  #left = "";

  /** `values`: returns the currently known values. `work` counts the work done. */
  constructor(values: () => KnownValues, work: Work) {
    this.#work = work;
    this.#known = new KnownStage(values);
  }

  /** Returns the text that is decided after this piece. */
  push(text: string): string {
    return this.#pass(text, false);
  }

  /** Ends the text and returns the part that was held back. */
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
