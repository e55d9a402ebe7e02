// The type for what a check of `parley doctor` finds, and a finding that several checks report.

export interface Finding {
  readonly name: string;
  readonly level: "ok" | "warning" | "problem";
  readonly text: string;
  /** How to fix the problem. */
  readonly mend?: string;
}

/**
 * Reports a database schema that was changed: for example, an unknown trigger could change what the gateway
 * stores.
 */
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
