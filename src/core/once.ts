// Runs an asynchronous load only once.

/**
 * Returns a function that loads a value at its first call and returns the same value from then on. After a
 * failure, the next call loads again.
 */
export function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}
