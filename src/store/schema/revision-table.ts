// Declares the type of the revision table for the query builder, as tables.ts does for the other tables.

/** Parts of the inputs of runs that many runs share (`core/shapes/record/revision.ts`). */
export interface RevisionTable {
  hash: string;
  kind: string;
  body_json: string;
  created_at: number;
  /** Time at which a run last ended that used the revision, or up to some hours before. */
  used_at: number;
}
