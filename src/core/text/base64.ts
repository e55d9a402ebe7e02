// Splits base64 for a check in linear time, of texts of any length.

export interface Base64Parts {
  /** The text without the padding at its end. */
  readonly digits: string;
  readonly padding: 0 | 1 | 2;
  /** Position of the first character that is no digit. Undefined: all are. */
  readonly wrongAt: number | undefined;
}

/**
 * Looks for one wrong character: an expression for the whole text would keep a state for each of its
 * characters, and fail for millions of them.
 */
export function base64Parts(text: string): Base64Parts {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const digits = text.slice(0, text.length - padding);
  return { digits, padding, wrongAt: /[^A-Za-z0-9+/]/.exec(digits)?.index };
}
