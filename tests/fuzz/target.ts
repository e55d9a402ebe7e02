// A fuzz target: a kind of untrusted input, and a property that must be true for every input.

import type { Arbitrary } from "fast-check";

/** The parts that a round uses, and the check of one input. */
export interface Property<Input> {
  /**
   * Throws or rejects if the input violates the property. It must accept any value, because the corpus is
   * written by hand.
   */
  check(input: Input): void | Promise<void>;
  /** Runs after the last input of a round: closes the parts and checks the whole round. */
  close?(): Promise<void>;
}

export interface FuzzTarget<Input> {
  readonly name: string;
  /** The property in one sentence. */
  readonly proves: string;
  readonly inputs: Arbitrary<Input>;
  /** Number of inputs in a round. Each round opens the parts again. */
  readonly roundRuns: number;
  /** Number of inputs in CI, not counting the corpus. All targets together take a few minutes. */
  readonly ciRuns: number;
  open(): Property<Input> | Promise<Property<Input>>;
}

/** Thrown by a property that an input violates. */
class Broken extends Error {}

/** Throws unless the condition is true. `text` explains the failure to a developer. */
export function must(holds: boolean, text: string | (() => string)): asserts holds {
  if (!holds) throw new Broken(typeof text === "string" ? text : text());
}

/** Shortens a value for a message. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 400 ? `${text.slice(0, 400)}… (${text.length} characters)` : text;
}
