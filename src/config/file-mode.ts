// Owns whether a file that holds secrets is its owner's alone, as far as its mode says.

/** Bits of a mode by which others than the owner reach a file. */
const OTHERS = 0o077;

/** Never on Windows, where modes say nothing of it. */
export const othersReach = (mode: number): boolean => process.platform !== "win32" && (mode & OTHERS) !== 0;

/** As `chmod` takes it. */
export const octalMode = (mode: number): string => (mode & 0o777).toString(8);
