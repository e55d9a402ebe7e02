// Reduces a gateway's memory with flags of Node and settings of the C library. Plain JavaScript for Node 18
// and later, because the launcher imports it before it checks the version.

/**
 * `--max-semi-space-size`: MB for young objects. Node's default is up to 128, but more than 8 does not make a
 * busy gateway faster. `--heap-growing-percent`: percentage by which the heap may grow between two
 * collections.
 */
const FLAGS = { "--max-semi-space-size": 8, "--heap-growing-percent": 20 };
/**
 * Settings of the C library: use one memory arena instead of one for each thread, and return free memory to
 * the system. Blocks from 8 KB are mapped one by one, because V8's compilers take many of them for a moment:
 * in the arena, their gaps between lasting blocks would stay.
 */
const ENVIRONMENT = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_TRIM_THRESHOLD_: "131072",
  MALLOC_MMAP_THRESHOLD_: "8192",
};
/** The variable that lists the variables that were added for this process only. */
const ADDED = "PARLEY_ADDED_ENV";
/** Commands that run for a long time; only these get the flags. */
const SERVERS = ["gateway", "demo"];

/** Returns the Node flags for a command line. `given`: the current flags, which are not returned again. */
export function heapFlags(args, given) {
  if (args.length > 0 && !args.some((arg) => SERVERS.includes(arg))) return [];
  return Object.entries(FLAGS)
    .filter(([flag]) => !given.some((text) => text.includes(flag)))
    .map(([flag, value]) => `${flag}=${value}`);
}

/** Returns `env` with these settings. Returns `env` unchanged if it has one of them. */
export function withHeapEnv(env) {
  const names = Object.keys(ENVIRONMENT);
  if (names.some((name) => env[name] !== undefined)) return env;
  return { ...env, ...ENVIRONMENT, [ADDED]: names.join(",") };
}

/** Removes from `env` the variables that `withHeapEnv` added, so that child processes do not inherit them. */
export function dropHeapEnv(env) {
  for (const name of env[ADDED]?.split(",") ?? []) delete env[name];
  delete env[ADDED];
}
