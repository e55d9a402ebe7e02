/**
 * Has `make` fill a new folder, and puts each thing that is in it into `dist`, for what has its name there.
 * Resolves with the names.
 */
export function putInPlace(dist: string, make: (folder: string) => Promise<unknown>): Promise<string[]>;
/** Removes what is in `dist` and is none of these; what is being built there stays. */
export function keepOnly(dist: string, names: readonly string[]): void;
