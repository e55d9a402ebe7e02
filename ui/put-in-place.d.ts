/**
 * Lets `make` fill a new folder, then moves each entry of it into `dist`, replacing an entry of the same
 * name. Resolves with the names.
 */
export function putInPlace(dist: string, make: (folder: string) => Promise<unknown>): Promise<string[]>;
/** Removes all entries of `dist` except `names` and folders of running builds. */
export function keepOnly(dist: string, names: readonly string[]): void;
