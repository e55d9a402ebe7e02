// Keeps a gateway's process small: flags of Node, and settings of the C library. Plain JavaScript that any
// Node from 18 on can read: the launcher imports it before it knows which Node this is.

/**
 * By flag: MB of space for young objects (the runtime would take up to 128, and a busy gateway is no faster
 * for that), and percent that the heap may grow between two collections.
 */
const FLAGS = { "--max-semi-space-size": 8, "--heap-growing-percent": 20 };
/** One pool of memory in place of one for each thread, and free memory goes back to the system. */
const ENVIRONMENT = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_TRIM_THRESHOLD_: "131072",
  MALLOC_MMAP_THRESHOLD_: "131072",
};
/** Names the variables that were added, since they are meant for this process alone. */
const ADDED = "PARLEY_ADDED_ENV";
/** Commands that run for days. */
const SERVERS = ["gateway", "demo"];

/** The flags for `args` of the command line that are not set otherwise in `given`, the flags of this Node. */
export function heapFlags(args, given) {
  if (args.length > 0 && !args.some((arg) => SERVERS.includes(arg))) return [];
  return Object.entries(FLAGS)
    .filter(([flag]) => !given.some((text) => text.includes(flag)))
    .map(([flag, value]) => `${flag}=${value}`);
}

/** `env` with these settings, unless somebody has set one of them. */
export function withHeapEnv(env) {
  const names = Object.keys(ENVIRONMENT);
  if (names.some((name) => env[name] !== undefined)) return env;
  return { ...env, ...ENVIRONMENT, [ADDED]: names.join(",") };
}

/** Takes out of `env` what was added to it, so that no program that is started from here inherits it. */
export function dropHeapEnv(env) {
  for (const name of env[ADDED]?.split(",") ?? []) delete env[name];
  delete env[ADDED];
}
