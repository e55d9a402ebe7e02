// Owns the shape of what the doctor finds.

export interface Finding {
  readonly name: string;
  readonly level: "ok" | "warning" | "problem";
  readonly text: string;
  /** What to do about it. */
  readonly mend?: string;
}
