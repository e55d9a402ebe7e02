// Owns what a fuzz target is: a kind of input from outside, and what must hold for every one of them.

import type { Arbitrary } from "fast-check";

/** The real parts, opened, and the question that is put to them for each input. */
export interface Property<Input> {
  /** Throws, or rejects, for an input that breaks it. Takes no input for granted: the corpus is hand-written. */
  check(input: Input): void | Promise<void>;
  /** After the last input of a round; what was opened is closed, and what must hold of it all is checked. */
  close?(): Promise<void>;
}

export interface FuzzTarget<Input> {
  readonly name: string;
  /** What holds for every input, in a sentence. */
  readonly proves: string;
  readonly inputs: Arbitrary<Input>;
  /** Inputs of a round; the parts are opened anew for each. */
  readonly roundRuns: number;
  /** Inputs in CI, the corpus not counted: all targets together take about a minute. */
  readonly ciRuns: number;
  open(): Property<Input> | Promise<Property<Input>>;
}

/** Thrown by a property: the input that was tried breaks it. */
class Broken extends Error {}

/** Says what must hold; `text` is read by whoever looks for the bug. */
export function must(holds: boolean, text: string | (() => string)): asserts holds {
  if (!holds) throw new Broken(typeof text === "string" ? text : text());
}

/** A value as a message may show it. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 400 ? `${text.slice(0, 400)}… (${text.length} characters)` : text;
}
