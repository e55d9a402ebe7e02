// A model request that failed in a way that may pass, and what people are told of the next try.

export interface ModelRetry {
  /** From 1. */
  readonly attempt: number;
  /** The most of them. */
  readonly of: number;
  /** How long it waits before. */
  readonly delayMs: number;
  /** The error in the provider's words. */
  readonly error: string;
}

/** As `retrying, 2 of 3, in 4 s: 529 overloaded`. */
export function retryWords({ attempt, of, delayMs, error }: ModelRetry): string {
  return `retrying, ${attempt} of ${of}, in ${Math.ceil(delayMs / 1_000)} s: ${error}`;
}
