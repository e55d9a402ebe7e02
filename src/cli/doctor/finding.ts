// The shape of what the doctor finds, and the findings that several checks share.

export interface Finding {
  readonly name: string;
  readonly level: "ok" | "warning" | "problem";
  readonly text: string;
  /** What to do about it. */
  readonly mend?: string;
}

/** A schema that somebody altered: a trigger in it could change what the gateway does. */
export function alteredSchema(differences: readonly string[]): Finding[] {
  if (differences.length === 0) return [];
  return [
    {
      name: "store schema",
      level: "problem",
      text: `the store's schema is not as this program makes it: ${differences.join(", ")}`,
      mend: "Find out who changed it. A backup that is restored into an empty store has the right schema.",
    },
  ];
}
