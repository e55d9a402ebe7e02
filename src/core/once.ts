// Runs an asynchronous load only once.

/**
 * Loads a value at the first call, and returns the same value from then on. After a failure, the next call
 * tries again.
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
