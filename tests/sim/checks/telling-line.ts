// The line that a worker prints for a story.

export interface TellingLine {
  readonly seed: number;
  /** Equal for equal stories. */
  readonly mark: string;
  readonly moments: number;
  readonly runs: number;
  /** The violation, and the invariant that it breaks; absent: none. */
  readonly wrong?: string;
  readonly invariant?: string;
  readonly trace?: readonly string[];
}
