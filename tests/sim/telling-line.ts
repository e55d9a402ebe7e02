// Owns what a worker prints of a story.

export interface TellingLine {
  readonly seed: number;
  /** Equal for equal stories. */
  readonly mark: string;
  readonly moments: number;
  readonly runs: number;
  /** What must not be, and which invariant it breaks; absent: nothing. */
  readonly wrong?: string;
  readonly invariant?: string;
  readonly trace?: readonly string[];
}
