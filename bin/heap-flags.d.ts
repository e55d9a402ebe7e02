// The types of heap-flags.js.

type Environment = Record<string, string | undefined>;

/**
 * Returns the Node flags for a command line. `given`: the current flags, which are not returned again.
 * `version`: the version of the Node that gets them. Default: that of this process.
 */
export function heapFlags(args: readonly string[], given: readonly string[], version?: string): string[];
/**
 * Returns `env` with settings of the C library that save memory. Returns `env` unchanged if it has one of
 * them.
 */
export function withHeapEnv<T extends Environment>(env: T): T & Environment;
/** Removes from `env` the variables that `withHeapEnv` added, so that child processes do not inherit them. */
export function dropHeapEnv(env: Environment): void;
