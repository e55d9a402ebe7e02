// Decides which text of an instruction file, a skill or a memory counts in a prompt.
// CF1: a text that runs with outside content could not change counts as it is.
// CF2: any other text counts only as an owner confirmed it. A text that differs waits for an owner's answer,
//      and the confirmed text counts meanwhile: nothing, for a new file.

export interface PromptText {
  /** The text as it is now. Absent: there is no file, or it can't be read. */
  readonly current: string | undefined;
  /** The text that counted before a run with outside content could write. */
  readonly confirmed: string | undefined;
  /** True if a run with outside content may have written the current text. */
  readonly guarded: boolean;
}

/** Returns the text that counts, and whether the current one waits for an owner. */
export function countedText({ current, confirmed, guarded }: PromptText): {
  readonly text: string | undefined;
  readonly waits: boolean;
} {
  if (!guarded || current === confirmed) return { text: current, waits: false };
  return { text: confirmed, waits: true };
}
