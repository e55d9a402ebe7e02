// The shape of a revision: a part of the inputs of runs that many runs share. It is stored once, under the
// hash of its content.

/** `run`: the inputs of a run, by the hashes of the other kinds. `tools`: a list of hashes of tools. */
export type RevisionKind = "run" | "prompt" | "tool" | "tools" | "settings";

export interface Revision {
  readonly hash: string;
  readonly kind: RevisionKind;
  readonly body: string;
}

/** Stands for the key of the session in a stored part of a prompt, so that sessions share the part. */
export const SESSION_PLACE = "{session}";

/** Body of a revision of kind `run`: the inputs of a run, except its message and its transcript. */
export interface RunInputs {
  readonly version: string;
  /** `<provider>/<model>`. */
  readonly model: string;
  readonly thinking: string;
  /** Hash of the settings, without their secrets. */
  readonly settings: string;
  readonly tools: string;
  /** Hashes of the parts of the system prompt, without the context of the run. */
  readonly prompt: readonly string[];
  /**
   * The context that ends the prompt: that of the run's input, or that of its sub-agent session. Absent if
   * there is none.
   */
  readonly context?: "input" | "session";
}

/** The revision of an executing run. */
export interface WorkingRevision {
  /** Hash of the revision of kind `run`. */
  readonly hash: string;
  /** The revisions to store with the run's end, because the store may not have them. */
  readonly rows: readonly Revision[];
  noteStored(): void;
}
