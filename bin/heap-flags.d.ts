// The types of heap-flags.js.

type Environment = Record<string, string | undefined>;

/** Returns the flags for a command line that are not already in `given`, the flags of this Node. */
export function heapFlags(args: readonly string[], given: readonly string[]): string[];
/** Returns `env` with the settings of the C library, except those that are already set. */
export function withHeapEnv<T extends Environment>(env: T): T & Environment;
/** Removes the added variables from `env`, so that child processes do not inherit them. */
export function dropHeapEnv(env: Environment): void;
