// Finds all known secret values in a text in one pass (Aho-Corasick algorithm).
// KV1: the work is linear in the length of the text, however many values there are and however they overlap.
// Values that overlap in the text are masked together, so that no part of them remains. A mask in the text
// ends every match, so masking a text twice has the same result as masking it once.

import { MASK } from "./mask.ts";
import type { Work } from "./shapes.ts";

interface Node {
  readonly next: Map<number, number>;
  readonly depth: number;
  /** Node of the longest proper suffix. */
  fail: number;
  /** Length of the longest value that ends at this node; 0 if none does. */
  longest: number;
}

const ROOT = 0;
const MASK_FIRST = MASK.charCodeAt(0);

const nodeAt = (depth: number): Node => ({ next: new Map(), depth, fail: ROOT, longest: 0 });

/** Returns the node that is reached from `from` by one more character. */
function step(nodes: readonly Node[], from: number, code: number, work: Work): number {
  let state = from;
  for (;;) {
    work.steps += 1;
    const node = nodes[state] as Node;
    const next = node.next.get(code);
    if (next !== undefined) return next;
    if (state === ROOT) return ROOT;
    state = node.fail;
  }
}

type Span = [start: number, end: number];

/** Adds a span at the end, and merges it with the spans that it overlaps. */
function cover(spans: Span[], from: number, end: number): void {
  let start = from;
  let furthest = end;
  for (let last = spans.at(-1); last !== undefined && last[1] > start; last = spans.at(-1)) {
    start = Math.min(start, last[0]);
    furthest = Math.max(furthest, last[1]);
    spans.pop();
  }
  spans.push([start, furthest]);
}

/** Returns how many characters at the end of a text may be the start of a mask. */
function maskBegun(text: string): number {
  const at = text.lastIndexOf("[");
  const isBegun = at >= 0 && text.length - at < MASK.length && MASK.startsWith(text.slice(at));
  return isBegun ? text.length - at : 0;
}

/** Masked text that later text cannot change, and the rest. */
export interface DecidedValues {
  readonly text: string;
  /** The undecided end of the text. The caller passes it again, followed by the next piece. */
  readonly rest: string;
  /** Number of characters at the start of `rest` that belong to a value whose mask was already returned. */
  readonly covered: number;
}

export class KnownValues {
  readonly #nodes: readonly Node[];
  /** For each byte: whether a value starts with a character that has this low byte. */
  readonly #begins = new Uint8Array(256);
  readonly longest: number;

  constructor(values: Iterable<string>) {
    const all = [...values];
    const nodes = [nodeAt(0)];
    for (const value of all) {
      let state = ROOT;
      for (let at = 0; at < value.length; at += 1) {
        const { next, depth } = nodes[state] as Node;
        const code = value.charCodeAt(at);
        const known = next.get(code);
        if (known === undefined) nodes.push(nodeAt(depth + 1));
        state = known ?? nodes.length - 1;
        next.set(code, state);
      }
      (nodes[state] as Node).longest = value.length;
    }
    this.#nodes = nodes;
    // Sets the suffix links, beginning with the nodes nearest to the root.
    const work = { steps: 0 };
    const queue = [ROOT];
    for (const state of queue) {
      const node = this.#nodes[state] as Node;
      for (const [code, child] of node.next) {
        const below = this.#nodes[child] as Node;
        if (state !== ROOT) below.fail = step(this.#nodes, node.fail, code, work);
        below.longest = Math.max(below.longest, (this.#nodes[below.fail] as Node).longest);
        queue.push(child);
      }
    }
    for (const value of all) this.#begins[value.charCodeAt(0) & 0xff] = 1;
    this.longest = all.reduce((most, { length }) => Math.max(most, length), 0);
  }

  /** Returns the text with every value masked. `open` also masks the possible start of a value at the end. */
  mask(text: string, work: Work, open: boolean): string {
    const { spans, begun } = this.#find(text, work, 0);
    if (open && begun > 0) cover(spans, text.length - begun, text.length);
    if (spans.length === 0) return text;
    let [out, from] = ["", 0];
    for (const [start, end] of spans) {
      out += text.slice(from, start) + MASK;
      from = end;
    }
    return out + text.slice(from);
  }

  /**
   * Masks the decided part of a text that arrives in pieces. `covered` is the number of characters at the
   * start that belong to a value whose mask was already returned. `last` means that no more text follows.
   */
  decide(text: string, work: Work, covered: number, last: boolean): DecidedValues {
    const { spans, begun } = this.#find(text, work, covered);
    const kept = last ? 0 : Math.max(begun, maskBegun(text));
    const stop = text.length - kept;
    if (stop === 0) return { text: "", rest: text, covered };
    let [out, from] = ["", 0];
    for (const [start, end] of spans) {
      if (start >= stop) break;
      out += text.slice(from, start) + (start === 0 && covered > 0 ? "" : MASK);
      from = end;
    }
    if (from < stop) out += text.slice(from, stop);
    return { text: out, rest: text.slice(stop), covered: Math.max(0, from - stop) };
  }

  /** Finds the values. `begun` is the number of characters at the end that may be the start of a value. */
  #find(text: string, work: Work, covered: number): { spans: Span[]; begun: number } {
    const spans: Span[] = covered > 0 ? [[0, covered]] : [];
    if (this.longest === 0) return { spans, begun: 0 };
    work.steps += text.length;
    let state = ROOT;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === MASK_FIRST && text.startsWith(MASK, at)) {
        state = ROOT;
        at += MASK.length - 1;
      } else if (state !== ROOT || this.#begins[code & 0xff] === 1) {
        state = step(this.#nodes, state, code, work);
        const { longest } = this.#nodes[state] as Node;
        if (longest > 0) cover(spans, at + 1 - longest, at + 1);
      }
    }
    return { spans, begun: (this.#nodes[state] as Node).depth };
  }
}
