/** Lists the source files of the program with their sizes and times. */
export function madeOf(root: string): Record<string, string>;
/** Records the source files from which dist was built. */
export function noteMadeOf(root: string, files: Record<string, string>): void;
/** Deletes the record of `noteMadeOf`, because the contents of dist are about to change. */
export function forgetMadeOf(root: string): void;
/** Returns whether all files from which dist was built are unchanged. */
export function isFresh(root: string): boolean;
