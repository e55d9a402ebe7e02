// A mutant: a change of a few characters in the source. It breaks an invariant, which the simulation must
// notice.

export interface Mutant {
  readonly name: string;
  /** The broken invariant, and a description of the wrong behaviour. */
  readonly breaks: string;
  /** Path relative to the root of the repository. */
  readonly file: string;
  /** The text that is replaced. It occurs once in the file. */
  readonly from: string;
  readonly to: string;
}
