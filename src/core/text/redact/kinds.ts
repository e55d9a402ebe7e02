// Defines the kinds of characters that occur in credentials.

/** A kind of character. */
export interface Kind {
  readonly index: number;
  readonly ascii: Uint8Array;
  /** Whether the kind includes letters and white space beyond ASCII. */
  readonly wide: boolean;
  readonly wideSpace: boolean;
}

let kinds = 0;

function kind(one: RegExp): Kind {
  const ascii = new Uint8Array(128);
  for (let code = 0; code < 128; code += 1) ascii[code] = one.test(String.fromCharCode(code)) ? 1 : 0;
  kinds += 1;
  return { index: kinds - 1, ascii, wide: one.test("é"), wideSpace: one.test("\u2003") };
}

export const ALNUM = kind(/[A-Za-z0-9]/);
export const UPPER = kind(/[A-Z0-9]/);
export const DIGIT = kind(/[0-9]/);
export const LOWER = kind(/[a-z]/);
export const WORD = kind(/[A-Za-z0-9_-]/);
export const WORDLESS_DIGITS = kind(/[A-Za-z_-]/);
export const FINE_WORD = kind(/[A-Za-z0-9_]/);
export const DASHED = kind(/[A-Za-z0-9-]/);
export const PATH = kind(/[A-Za-z0-9/_-]/);
export const FIELD = kind(/[\w.-]/);
export const BEARER = kind(/[A-Za-z0-9._~+/=-]/);
export const BEARER_PLAIN = kind(/[A-Za-z._~+/=-]/);
export const BASE64 = kind(/[A-Za-z0-9+/=]/);
export const KEY_LINE = kind(/[A-Z0-9 ]/);
export const BLANK = kind(/[ \t]/);
export const BACKSLASH = kind(/\\/);
export const USER = kind(/[^\s/:@?#]/);
export const UNTIL_SLASH = kind(/[^\s/]/);
export const HEADER = kind(/[^\s"',;[]/);
export const HEADER_PLAIN = kind(/[^\sA-Z0-9=]/);
export const COOKIE = kind(/[^\r\n"'\\]/);
export const UNDIGITAL = kind(/[^\s0-9]/);
export const UNQUOTED = kind(/[^"'\n]/);
export const ESCAPED_TEXT = kind(/[^"'\\\n]/);
/** Characters of a value without quotation marks. */
export const VALUE = kind(/[^\s"'`,;&|<>()[\]{}]/);

const WIDE_SPACE = /\s/;

export function isOf({ ascii, wide, wideSpace }: Kind, code: number): boolean {
  if (code < 128) return ascii[code] === 1;
  return wide && (wideSpace || !WIDE_SPACE.test(String.fromCharCode(code)));
}

/** Returns the number of defined kinds. */
export function countOfKinds(): number {
  return kinds;
}
