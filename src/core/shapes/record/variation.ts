// The shape of the changes with which a recorded chain is run again.

/** The changes of a replay. */
export interface Variation {
  /** Models of agents, as `<provider>/<model>`. `*`: the model of every other agent. */
  readonly models: Readonly<Record<string, string>>;
  /** Instructions in the settings, by agent. */
  readonly instructions: Readonly<Record<string, string>>;
  /** Texts of instruction files, by agent and by the name of the file. */
  readonly files: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Values that replace those of the recorded settings. `agents` is by agent. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Text of the first message. Absent: the recorded one. */
  readonly message?: string;
  /** Number or message id of the first step that models answer. Absent: the first that differs. */
  readonly from?: string;
  readonly live: readonly string[];
}

export const NO_VARIATION: Variation = { models: {}, instructions: {}, files: {}, settings: {}, live: [] };
