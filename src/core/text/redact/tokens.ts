// Lists the prefixes of known tokens, and the syntax that follows each.

import { ALNUM, DASHED, FINE_WORD, type Kind, UPPER, WORD, WORDLESS_DIGITS } from "./kinds.ts";

const JWT_CHARS_MAX = 8_192;

/** Methods of a scanned text that a token matcher uses. */
export interface TextScan {
  runEnd(of: Kind, from: number): number;
  runsOut(end: number): boolean;
  has(part: string, at: number): boolean;
  is(of: Kind, at: number): boolean;
  digitWithin(plain: Kind, from: number): boolean;
}

/** Reads a token after its prefix. Returns the position after the token, or NONE. */
export type Body = (scan: TextScan, from: number) => number;

export const NONE = -1;

/** Matches at least `least` characters of a kind, up to the end of the word. */
export const run =
  (of: Kind, least: number): Body =>
  (scan, from) => {
    const end = scan.runEnd(of, from);
    return end - from >= least ? scan.runEnd(WORD, end) : NONE;
  };

/** Matches parts that are separated by dots. Each part has a range for its number of characters. */
const matchDotted =
  (...parts: readonly (readonly [number, number])[]): Body =>
  (scan, from) => {
    let at = from;
    for (const [index, [least, most]] of parts.entries()) {
      const end = scan.runEnd(WORD, at);
      if (scan.runsOut(end)) return end;
      if (end - at < least || end - at > most) return NONE;
      if (index === parts.length - 1) return end;
      if (!scan.has(".", end)) return NONE;
      at = end + 1;
    }
    return NONE;
  };

const ANY = Number.POSITIVE_INFINITY;

function withDigit(scan: TextScan, from: number): number {
  return scan.digitWithin(WORDLESS_DIGITS, from) ? run(WORD, 16)(scan, from) : NONE;
}

function awsKey(scan: TextScan, from: number): number {
  const end = scan.runEnd(UPPER, from);
  return end - from === 16 && !scan.is(ALNUM, end) ? scan.runEnd(WORD, end) : NONE;
}

/** Prefixes of tokens. A token must not follow a letter or digit: `task-…` does not contain `sk-…`. */
export const TOKENS: readonly (readonly [string, Body])[] = [
  // JSON Web Tokens.
  ["eyJ", matchDotted([8, JWT_CHARS_MAX / 2], [8, JWT_CHARS_MAX], [8, ANY])],
  // OpenAI, Anthropic and others that use the same format. A digit is required, because hyphenated words
  // contain no digit.
  ["sk-", withDigit],
  ...["rk_", "sk_", "pk_"].flatMap((of) => [[`${of}live_`, run(ALNUM, 10)] as const]),
  ...["rk_", "sk_", "pk_"].flatMap((of) => [[`${of}test_`, run(ALNUM, 10)] as const]),
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map((of) => [of, run(ALNUM, 20)] as const),
  ["github_pat_", run(FINE_WORD, 20)],
  ["glpat-", run(WORD, 20)],
  ["npm_", run(ALNUM, 30)],
  ["hf_", run(ALNUM, 30)],
  ["AKIA", awsKey],
  ["ASIA", awsKey],
  ["AIza", run(WORD, 35)],
  ["ya29.", run(WORD, 20)],
  ["xapp-", run(DASHED, 10)],
  ["SG.", matchDotted([16, 64], [16, ANY])],
  ...["gsk_", "xai-", "whsec_", "shpat_", "shpca_", "shppa_", "shpss_"].map(
    (of) => [of, run(ALNUM, 20)] as const,
  ),
  ...["doo_v1_", "dop_v1_", "dor_v1_"].map((of) => [of, run(ALNUM, 20)] as const),
  ["pypi-", run(WORD, 20)],
  ["AGE-SECRET-KEY-1", run(UPPER, 20)],
  // Parley's own tokens: device tokens, tokens that operators create, codes and tokens of signed-in MCP
  // clients, and tokens of programs that work for a session.
  ["pdt1.", matchDotted([16, 4_096], [16, ANY])],
  ["pat1.", matchDotted([16, 64], [16, ANY])],
  ...["pmc1.", "pmt1.", "pmr1."].map((of) => [of, matchDotted([16, 64], [1, 15], [16, ANY])] as const),
  ["pass.", run(ALNUM, 60)],
  // Discord bots.
  ...["M", "N", "O"].map((of) => [of, matchDotted([22, 27], [6, 6], [27, ANY])] as const),
];
