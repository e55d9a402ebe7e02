// The types of heap-flags.js.

type Environment = Record<string, string | undefined>;

/** Returns the Node flags for a command line, without those in `given`, the current flags. */
export function heapFlags(args: readonly string[], given: readonly string[]): string[];
/**
 * Returns `env` with settings of the C library that save memory. A variable that is already set keeps its
 * value.
 */
export function withHeapEnv<T extends Environment>(env: T): T & Environment;
/** Removes the added variables from `env`, so that child processes do not inherit them. */
export function dropHeapEnv(env: Environment): void;
