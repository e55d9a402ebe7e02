// Checks base64 texts of any length in linear time.

export interface Base64Parts {
  /** Text without the padding at its end. */
  readonly digits: string;
  readonly padding: 0 | 1 | 2;
  /** Position of the first character that is not a base64 digit, or undefined if there is none. */
  readonly wrongAt: number | undefined;
}

/**
 * Splits a base64 text into digits and padding, and finds the first wrong character. Only searches for that
 * one character: a regular expression that matches the whole text would keep a state for each character, and
 * would fail for a text of millions of characters.
 */
export function base64Parts(text: string): Base64Parts {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const digits = text.slice(0, text.length - padding);
  return { digits, padding, wrongAt: /[^A-Za-z0-9+/]/.exec(digits)?.index };
}
