// Splits lists of ids for queries, because a statement has a limited number of parameters.

/** Maximum number of ids per query. */
const IDS_AT_ONCE = 256;

/** Yields the ids in parts, one for each query. */
export function* idParts(ids: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < ids.length; from += IDS_AT_ONCE) yield ids.slice(from, from + IDS_AT_ONCE);
}
