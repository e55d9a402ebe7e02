// Describes the retry of a failed model request.

export interface ModelRetry {
  /** Number of the next attempt, starting at 1. */
  readonly attempt: number;
  /** Maximum number of attempts. */
  readonly of: number;
  /** Time to wait before the attempt. */
  readonly delayMs: number;
  readonly error: string;
}

/** Formats a retry: `retrying, 2 of 3, in 4 s: 529 overloaded`. */
export function retryWords({ attempt, of, delayMs, error }: ModelRetry): string {
  return `retrying, ${attempt} of ${of}, in ${Math.ceil(delayMs / 1_000)} s: ${error}`;
}
