// Reduces a gateway's memory with flags of Node and settings of the C library. Plain JavaScript for Node 18
// and later, because the launcher imports it before it checks the version.

/**
 * MB for young objects. Node's default is up to 128, but more than 8 does not make a busy gateway faster.
 */
const FLAGS = { "--max-semi-space-size": 8 };
/**
 * Flags of V8 that another version might not know; then it would not start. `--heap-growing-percent`:
 * percentage by which the heap may grow between two collections. `--concurrent-maglev-max-threads`: 0 means
 * all threads. With two, 200 functions wait for their compilation in the first second of work, and the
 * memory of their queue, 6 MB, stays with the process.
 */
const FLAGS_OF_NODE_24 = { "--heap-growing-percent": 20, "--concurrent-maglev-max-threads": 0 };
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

/**
 * Returns the Node flags for a command line. `given`: the current flags, which are not returned again.
 * `version`: the version of the Node that gets them. Default: that of this process.
 */
export function heapFlags(args, given, version = process.versions.node) {
  if (args.length > 0 && !args.some((arg) => SERVERS.includes(arg))) return [];
  const flags = Number(version.split(".")[0]) === 24 ? { ...FLAGS, ...FLAGS_OF_NODE_24 } : FLAGS;
  return Object.entries(flags)
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
