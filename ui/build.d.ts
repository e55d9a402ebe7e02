/** Builds dist/ui if necessary. Resolves to false if Vite is missing (an install without devDependencies). */
export function buildPage(options?: { ifStale?: boolean }): Promise<boolean>;
