// Owns what a mutant is: a change of a few characters in the source, which breaks an invariant that the simulation must see.

export interface Mutant {
  readonly name: string;
  /** The broken invariant, and how it breaks. */
  readonly breaks: string;
  /** From the top of the project. */
  readonly file: string;
  /** Stands in the file once. */
  readonly from: string;
  readonly to: string;
}
