// Reads the errors of real servers (`wordings.json`), as documentation, source or public reports show them.

import { readFileSync } from "node:fs";

export interface Wording {
  readonly server: string;
  /** Absent for an error inside a stream. */
  readonly status?: number;
  readonly words: string;
}

const FILE = new URL("wordings.json", import.meta.url);

/** The errors by the part of the conversation that they blame: `length`, a part, or `others` for none. */
export const WORDINGS: Readonly<Record<string, readonly Wording[]>> = JSON.parse(readFileSync(FILE, "utf8"));
