// Keeps a gateway's memory small by flags of Node and settings of the C library. Plain JavaScript for Node 18
// and later: the launcher imports it before it checks the version.

/**
 * By flag: MB for young objects (the default of up to 128 does not make a busy gateway faster), and
 * percentage by which the heap may grow between two collections.
 */
const FLAGS = { "--max-semi-space-size": 8, "--heap-growing-percent": 20 };
/** One memory arena instead of one for each thread; free memory is returned to the system. */
const ENVIRONMENT = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_TRIM_THRESHOLD_: "131072",
  MALLOC_MMAP_THRESHOLD_: "131072",
};
/** Lists the variables that were added for this process only. */
const ADDED = "PARLEY_ADDED_ENV";
/** Commands that run for days. */
const SERVERS = ["gateway", "demo"];

/** Returns the flags for a command line that are not already in `given`, the flags of this Node. */
export function heapFlags(args, given) {
  if (args.length > 0 && !args.some((arg) => SERVERS.includes(arg))) return [];
  return Object.entries(FLAGS)
    .filter(([flag]) => !given.some((text) => text.includes(flag)))
    .map(([flag, value]) => `${flag}=${value}`);
}

/** Returns `env` with these settings, except those that are already set. */
export function withHeapEnv(env) {
  const names = Object.keys(ENVIRONMENT);
  if (names.some((name) => env[name] !== undefined)) return env;
  return { ...env, ...ENVIRONMENT, [ADDED]: names.join(",") };
}

/** Removes the added variables from `env`, so that child processes do not inherit them. */
export function dropHeapEnv(env) {
  for (const name of env[ADDED]?.split(",") ?? []) delete env[name];
  delete env[ADDED];
}
