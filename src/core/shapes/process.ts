// The shape of a gateway process that shares its store with others.

export interface ProcessFacts {
  readonly processId: string;
  readonly host: string;
  readonly version: string;
}

export interface ProcessRow extends ProcessFacts {
  readonly startedAt: number;
  readonly beatAt: number;
  readonly alive: boolean;
}
