// Owns the mask that replaces a credential.

export const MASK = "[redacted]";
/** Matches a mask, also one that says how much it hides. */
const MASKED = /^\[redacted\](?: \[\d+ characters\])?$/;
const KEY_WORDS = "[A-Z\\d ]{1,40}";
const KEY_FOOT = `(?:-----END ${KEY_WORDS}-----)?`;
const GAP = "(?:\\s|\\\\[nr])+";
/** Matches what a credential can be: one word without signs of a shell, also after its scheme, or a key. */
const CREDENTIAL = [
  /^(?:basic |bearer |bot |token )?[\w.+/=~:%@#!^*?,-]{1,512}$/i,
  // The lines of a key are long, except the last one.
  new RegExp(
    `^-----BEGIN ${KEY_WORDS}-----(?:${GAP}[\\w+/=]{30,})*(?:${GAP}[\\w+/=]+)?(?:${GAP}${KEY_FOOT})?$`,
  ),
];

/** Maximum length of a credential. */
export const CREDENTIAL_CHARS_MAX = 20_000;

/**
 * Returns the mask for a hidden text. The mask says how long the text is if it is more than a credential can
 * be, so that nobody can hide an instruction in it. `length`: the length of all that is hidden, if `hidden`
 * is only its beginning, and longer than a credential.
 */
export function maskOf(hidden: string, length = hidden.length): string {
  if (isMask(hidden)) return hidden;
  const isCredential = length <= CREDENTIAL_CHARS_MAX && CREDENTIAL.some((shape) => shape.test(hidden));
  return isCredential ? MASK : `${MASK} [${length} characters]`;
}

/** Returns whether a text is a mask. */
export function isMask(text: string): boolean {
  return MASKED.test(text);
}
