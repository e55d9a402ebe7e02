// Texts, numbers, names and trees that are likely to break programs.

import fc, { type Arbitrary } from "fast-check";

/** Names that every object inherits. With such a name, careless code would change the shared prototype. */
export const PROTOTYPE_NAMES = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "then",
];

/** Short texts that have broken programs before. */
const SPECIAL_TEXTS: readonly string[] = [
  "",
  " ",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udc00x",
  "\ud83d\ude00",
  "\u202egnp.exe",
  "\u200b",
  "\u2066\u2069",
  "\ufeff",
  "\u2028\u2029",
  "\r\n",
  "e\u0301",
  "ﬀ",
  "İ",
  "K",
  "null",
  "undefined",
  "NaN",
  "-1",
  "1e999",
  "0x10",
  "../../etc/passwd",
  "..\\..\\x",
  "%00",
  "%2e%2e%2f",
  "%u0041",
  "%%%",
  "${HOME}",
  "${KEY}",
  "$${",
  "{{7*7}}",
  "' or 1=1 --",
  '"; drop table messages; --',
  "*",
  "**",
  "[",
  "(a+)+$",
  "<script>",
  "agent:main:main",
  "main",
  "global",
  "unknown",
  "REPLY_SKIP",
  "ANNOUNCE_SKIP",
  "```",
  "Status: ok",
  ...PROTOTYPE_NAMES,
];

const SURROGATE_FIRST = 0xd800;
const SURROGATES = 0x800;

/**
 * Generates any character of Unicode, and the same ones as the unit `binary` of fast-check. That unit first makes
 * a table of a million characters, which takes a second of processor time and 85 MB.
 */
export const anyCharacter: Arbitrary<string> = fc.nat(0x10ffff - SURROGATES).map(
  (index) => String.fromCodePoint(index < SURROGATE_FIRST ? index : index + SURROGATES),
  (text) => {
    const [character, ...others] = typeof text === "string" ? text : [];
    const point = character?.codePointAt(0);
    if (point === undefined || others.length > 0 || !character?.isWellFormed())
      throw new Error("not one character");
    return point < SURROGATE_FIRST ? point : point - SURROGATES;
  },
);

/** Generates one character: a special one, or any of Unicode. */
const sign: Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(..."abcxyzAZ019_-. :%/\\\"'`{}[]()<>,;=*|#~\n\t".split("")) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "\u0000",
      "\u001b",
      "\u0085",
      "\u00ad",
      "\u200b",
      "\u202e",
      "\u2028",
      "\ufeff",
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom("\ud800", "\udbff", "\udc00", "\udfff") },
  { weight: 1, arbitrary: fc.string({ unit: anyCharacter, minLength: 1, maxLength: 1 }) },
);

/** Generates a short text, a long text (up to a megabyte), or a special text. */
export function nastyText(maxLength = 1 << 20): Arbitrary<string> {
  const piece = fc.oneof(fc.constantFrom(...SPECIAL_TEXTS), fc.string({ unit: sign, maxLength: 6 }));
  const long = fc
    .tuple(piece, fc.nat(maxLength), piece)
    .map(([one, length, end]) => one.repeat(Math.floor(length / Math.max(1, one.length))) + end);
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...SPECIAL_TEXTS) },
    { weight: 12, arbitrary: fc.string({ unit: sign, maxLength: 40 }) },
    { weight: 6, arbitrary: fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("")) },
    { weight: 3, arbitrary: fc.nat(Math.min(2_000, maxLength)).map((length) => "x".repeat(length)) },
    { weight: 1, arbitrary: long },
  );
}

export const nastyNumber: Arbitrary<number> = fc.oneof(
  fc.constantFrom(
    0,
    -0,
    -1,
    1,
    0.5,
    1e-9,
    49.999,
    2 ** 31,
    2 ** 31 - 1,
    2 ** 53,
    -(2 ** 53),
    1e21,
    1e300,
    -1e300,
  ),
  fc.constantFrom(Number.MAX_SAFE_INTEGER, Number.MIN_VALUE, Number.MAX_VALUE, Number.EPSILON),
  fc.integer({ min: -5, max: 1_000 }),
);

/** Generates deeply nested arrays or objects. */
const deep: Arbitrary<unknown> = fc.tuple(fc.nat(3_000), fc.boolean()).map(([depth, inArrays]) => {
  let value: unknown = null;
  for (let level = 0; level < depth; level += 1) value = inArrays ? [value] : { a: value };
  return value;
});

const name: Arbitrary<string> = fc.oneof(fc.constantFrom(...PROTOTYPE_NAMES), nastyText(200));

/** Makes an object in the same way as `JSON.parse`: `__proto__` is an ordinary key. */
export function objectOf(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [key, value] of entries) {
    Object.defineProperty(made, key, { value, configurable: true, enumerable: true, writable: true });
  }
  return made;
}

/** Generates any JSON value. `depth` limits the nesting. */
export function nastyValue(depth = 2): Arbitrary<unknown> {
  const flat: Arbitrary<unknown> = fc.oneof(
    { weight: 4, arbitrary: nastyText(20_000) },
    { weight: 3, arbitrary: nastyNumber },
    { weight: 3, arbitrary: fc.constantFrom(true, false, null) },
  );
  if (depth === 0) return flat;
  const inner = nastyValue(depth - 1);
  return fc.oneof(
    { weight: 8, arbitrary: flat },
    { weight: 2, arbitrary: fc.array(inner, { maxLength: 4 }) },
    { weight: 2, arbitrary: fc.array(fc.tuple(name, inner), { maxLength: 4 }).map(objectOf) },
    { weight: 1, arbitrary: fc.constantFrom([], {}) },
    { weight: 1, arbitrary: deep },
  );
}

export { name as nastyName };
