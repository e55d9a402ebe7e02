// Defines a fuzz target: a kind of untrusted input, and the property that must hold for every input.

import type { Arbitrary } from "fast-check";

/** The opened real parts, and the check of one input. */
export interface Property<Input> {
  /**
   * Throws or rejects if the input breaks the property. The corpus is written by hand, so any input may
   * arrive.
   */
  check(input: Input): void | Promise<void>;
  /** Runs after the last input of a round: closes the parts and checks what must hold for the whole round. */
  close?(): Promise<void>;
}

export interface FuzzTarget<Input> {
  readonly name: string;
  /** The property that holds for every input, in a sentence. */
  readonly proves: string;
  readonly inputs: Arbitrary<Input>;
  /** Number of inputs of a round. The parts are opened again for each round. */
  readonly roundRuns: number;
  /** Number of inputs in CI without the corpus. All targets together take about a minute. */
  readonly ciRuns: number;
  open(): Property<Input> | Promise<Property<Input>>;
}

/** Thrown by a property if the input breaks it. */
class Broken extends Error {}

/** Throws unless the condition holds. `text` is read by the developer who looks for the bug. */
export function must(holds: boolean, text: string | (() => string)): asserts holds {
  if (!holds) throw new Broken(typeof text === "string" ? text : text());
}

/** Shortens a value for a message. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 400 ? `${text.slice(0, 400)}… (${text.length} characters)` : text;
}
