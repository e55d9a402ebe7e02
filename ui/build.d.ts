/** Brings dist/ui up to date. False: there is nothing to build with (an install without devDependencies). */
export function buildPage(options?: { ifStale?: boolean }): Promise<boolean>;
