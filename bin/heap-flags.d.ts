// The types of heap-flags.js.

type Environment = Record<string, string | undefined>;

/** The flags for `args` of the command line that are not set otherwise in `given`, flags of this Node. */
export function heapFlags(args: readonly string[], given: readonly string[]): string[];
/** `env` with the settings of the C library, unless somebody has set one of them. */
export function withHeapEnv<T extends Environment>(env: T): T & Environment;
/** Takes out of `env` what was added to it, so that no program that is started from here inherits it. */
export function dropHeapEnv(env: Environment): void;
