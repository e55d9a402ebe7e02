// The type of the doctor's findings, and findings that several checks share.

export interface Finding {
  readonly name: string;
  readonly level: "ok" | "warning" | "problem";
  readonly text: string;
  /** How to fix it. */
  readonly mend?: string;
}

/** Reports a changed schema: a trigger in it could change what the gateway does. */
export function alteredSchema(differences: readonly string[]): Finding[] {
  if (differences.length === 0) return [];
  return [
    {
      name: "store schema",
      level: "problem",
      text: `the store's schema differs from the one that Parley creates: ${differences.join(", ")}`,
      mend: "Find out who changed it. A backup restored into an empty store has the right schema.",
    },
  ];
}
