// Checks the mode of a file: can users other than its owner access it?

/** Mode bits that give access to other users. */
const OTHERS = 0o077;

/**
 * Returns whether other users can access the file. Always false on Windows, where modes do not show this.
 */
export const othersReach = (mode: number): boolean => process.platform !== "win32" && (mode & OTHERS) !== 0;

/** Formats a mode for `chmod`. */
export const octalMode = (mode: number): string => (mode & 0o777).toString(8);
