// The type of a finding of the doctor, and a finding that several checks report.

export interface Finding {
  readonly name: string;
  readonly level: "ok" | "warning" | "problem";
  readonly text: string;
  /** How to fix the problem. */
  readonly mend?: string;
}

/** Reports a changed schema: for example, a trigger in it could change the behaviour of the gateway. */
export function alteredSchema(differences: readonly string[]): Finding[] {
  if (differences.length === 0) return [];
  return [
    {
      name: "store schema",
      level: "problem",
      text: `the store's schema differs from the one that Parley creates: ${differences.join(", ")}`,
      mend: "Find out who changed the schema. To get the right schema, restore a backup into an empty store.",
    },
  ];
}
