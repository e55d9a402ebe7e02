// Checks whether only its owner can access a file, by its mode.

/** Mode bits that give access to other users. */
const OTHERS = 0o077;

/** Always false on Windows, where modes do not show access. */
export const othersReach = (mode: number): boolean => process.platform !== "win32" && (mode & OTHERS) !== 0;

/** Formats a mode for `chmod`. */
export const octalMode = (mode: number): string => (mode & 0o777).toString(8);
