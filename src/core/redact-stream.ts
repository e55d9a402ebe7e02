// Masks a text that comes in pieces: what leaves is the beginning of what masking the whole text gives.
// RS1: whatever the pieces are, all that leaves together is the masked text of the whole.
// RS2: what may still become part of a credential waits. At most about 20,500 characters wait; for ordinary
//      prose it is the last word at most.
// RS3: the work is linear in the text, however it is cut into pieces.

import { BASE64, isOf, type Kind, VALUE } from "./redact-kinds.ts";
import type { KnownValues } from "./redact-known.ts";
import {
  KEY_GAP,
  KEY_GAP_MAX,
  KEY_LINE_MIN,
  PASSES_MAX,
  Scan,
  type Tail,
  type Work,
} from "./redact-shapes.ts";

/** More than any matcher looks back. */
const CONTEXT_CHARS = 64;
/** A text that waits is looked at again when it has grown by this part of itself. */
const GROWTH = 8;

class KnownStage {
  readonly #values: () => KnownValues;
  #rest = "";
  #covered = 0;

  constructor(values: () => KnownValues) {
    this.#values = values;
  }

  /** Returns the text that can leave after this piece. `last`: nothing follows. */
  push(text: string, work: Work, last: boolean): string {
    const decided = this.#values().decide(this.#rest + text, work, this.#covered, last);
    this.#rest = decided.rest;
    this.#covered = decided.covered;
    return decided.text;
  }
}

/** Where a run of one kind ends. */
function endOf(kind: Kind, text: string, from: number): number {
  let at = from;
  while (at < text.length && isOf(kind, text.charCodeAt(at))) at += 1;
  return at;
}

/** Where a credential ends, as far as is known, and whether it does end there. */
type TailEnd = readonly [end: number, isDecided: boolean];

function runEnd(kind: Kind, text: string, last: boolean): TailEnd {
  const end = endOf(kind, text, 0);
  return [end, last || end < text.length];
}

/** The end of the lines of a private key. */
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

/** One search for shapes over a text that comes in pieces. */
class ShapeStage {
  /** The text before `#rest`, as far as a matcher may look. */
  #context: string;
  #behindMask = false;
  #rest = "";
  #lookAgainAt = 0;
  #hasMasked = false;
  /** The credential that was masked last goes on with this. */
  #tail: Tail | undefined;

  /** `context`: what came before, as far as a matcher may look. */
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

  /** Takes what belongs to the credential off the text that waits. False: all of it may belong to it. */
  #skipTail(tail: Tail, last: boolean): boolean {
    const text = this.#rest;
    const [end, isDecided] = tail === "key lines" ? keyLinesEnd(text, last) : runEnd(tail, text, last);
    let kept = end;
    // Backslashes at the end of a value belong to the quotation mark behind it.
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
  /** Another one follows behind one that has masked something: that may make its neighbours credentials. */
  readonly #shapes: ShapeStage[] = [new ShapeStage("")];
  readonly #work: Work;
  /** The end of what has left. */
  #left = "";

  /** `values`: the known ones at this moment. `work` is told how much was done. */
  constructor(values: () => KnownValues, work: Work) {
    this.#work = work;
    this.#known = new KnownStage(values);
  }

  /** Returns the text that can leave after this piece. */
  push(text: string): string {
    return this.#pass(text, false);
  }

  /** Returns the text that was waiting: the text is complete. */
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
