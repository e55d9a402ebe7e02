// Gives the environment of a test command that a test starts.

/** Returns this environment without the variables of vitest and of the caller's database. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|NODE_ENV|TEST$|PARLEY_TEST_POSTGRES)/.test(name),
  );
  return { ...Object.fromEntries(inherited), NO_COLOR: "1" };
}
