/**
 * Calls `make` with a new folder to fill, then moves each entry of that folder into `dist`, where it replaces
 * the entry of the same name. Resolves with the names.
 */
export function putInPlace(dist: string, make: (folder: string) => Promise<unknown>): Promise<string[]>;
/** Removes all entries of `dist` except `names` and the folders of builds that are still running. */
export function keepOnly(dist: string, names: readonly string[]): void;
