/** Returns the current sources of the program: each file with its size and time. */
export function madeOf(root: string): Record<string, string>;
/** Records the sources of the program that is now in dist. */
export function noteMadeOf(root: string, files: Record<string, string>): void;
/** Removes the record, because the contents of dist are about to change. */
export function forgetMadeOf(root: string): void;
/** Returns true if the build in dist was made of exactly the current files. */
export function isFresh(root: string): boolean;
