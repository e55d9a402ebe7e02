// The shape of a gateway process that shares its store with others.

export interface ProcessFacts {
  readonly processId: string;
  readonly host: string;
  readonly version: string;
  /**
   * Digest of the configuration that the process runs, without its secrets and its address. Absent if the
   * process follows no configuration file, or is of an earlier version.
   */
  readonly configRevision?: string;
}

export interface ProcessRow extends ProcessFacts {
  readonly startedAt: number;
  readonly beatAt: number;
  readonly alive: boolean;
}
