// The line that a worker process prints about a story.

export interface TellingLine {
  readonly seed: number;
  /** A hash of the story: equal for equal stories. */
  readonly mark: string;
  readonly moments: number;
  readonly runs: number;
  /** The violation and the invariant that it breaks. Absent if there is none. */
  readonly wrong?: string;
  readonly invariant?: string;
  readonly trace?: readonly string[];
}
