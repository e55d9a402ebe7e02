// Finds text that looks like a label of the runtime. Similar characters are folded into one, and invisible
// ones are ignored.
// LA1: the work is linear in the length of the text. Characters are folded one at a time, because normalising
//      a long text takes quadratic time. A text with very many lines is quoted whole.
// A label is found even if it is disguised: with invisible, wide, styled or foreign characters, with marks or
// blanks between its letters, with other brackets, reversed, or split over several lines.

import { LINE_BREAK_AFTER, QUOTE_MARK } from "./safe-text.ts";

/**
 * Characters from Unicode's list of confusable characters that no normalisation turns into a Latin letter.
 */
const ALIKE: readonly (readonly [letter: string, signs: string])[] = [
  ["a", "⍺ɑαаΑАᎪᗅꓮ𖽀𐊠ɐ"],
  ["b", "ƄЬᏏᖯꞴΒВᏴᗷꓐ𐊂𐊡𐌁ʙ"],
  ["c", "ᴄⲥсꮯ𐐽🝌𑣲𑣩ⲤСᏟꓚ𐊢𐌂𐐕𐔜ɔς"],
  ["d", "ԁᏧᑯꓒᎠᗞᗪꓓᴅđ"],
  ["e", "℮ꬲеҽ⋿ΕЕⴹᎬꓰ𑢦𑢮𐊆ᴇɛɜɘǝƎєԑ"],
  ["f", "ꬵꞙẝք𝈓ꞘϜᖴꓝ𑣂𑢢𐊇𐊥𐔥ƒꜰ"],
  ["g", "ɡᶃƍցԌᏀᏳꓖɢ"],
  ["h", "һհᏂΗⲎНᎻᕼꓧ𐋏ʜħ"],
  ["i", "⍳ıɪɩιіꙇӏꭵᎥ𑣃"],
  ["j", "ϳјꞲͿЈᎫᒍꓙᴊ"],
  ["k", "ΚⲔКᏦᛕꓗ𐔘ᴋκкқ"],
  ["l", "∣⏽𐌠ƖǀΙⲒІӀⵏᛁꓲ𖼨𐊊𐌉𝈪ⳐᏞᒪꓡ𖼖𑢣𑢲𐐛𐔦ʟł"],
  ["m", "ΜϺⲘМᎷᗰᛖꓟ𐊰𐌑ᴍмɱ"],
  ["n", "ոռΝⲚꓠ𐔓ɴηпŋ"],
  ["o", "०੦૦௦౦೦൦๐໐၀ᴏᴑꬽοσⲟоჿօഠဝ𐓪𑣈𑣗𐐬০୦〇𑓐𑣠ΟⲞОՕⵔዐଠ𐓂ꓳ𑢵𐊒𐊫𐐄𐔖øɵө"],
  ["p", "⍴ρⲣрΡⲢРᏢᑭꓑ𐊕ᴘþ"],
  ["q", "ԛգզⵕꞯ"],
  ["r", "ꭇꭈᴦⲅгꮁ𝈖ƦᎡᏒ𐒴ᖇꓣ𖼵ʀɹ"],
  ["s", "ꜱƽѕꮪ𑣁𐑈ЅՏᏕᏚꓢ𖼺𐊖𐐠ʂ"],
  ["t", "⊤⟙🝨ΤⲦТᎢꓔ𖼊𑢼𐊗𐊱𐌕ᴛŧтτ"],
  ["u", "ꞟᴜꭎꭒʋυս𐓶𑣘∪⋃Սሀ𐓎ᑌꓴ𖽂𑢸цμ"],
  ["v", "∨⋁ᴠνѵ𑜆ꮩ𑣀𝈍ѴⴸᏙᐯꛟꓦ𖼈𑢠𐔝"],
  ["w", "ɯᴡѡԝա𑜊𑜎𑜏ꮃ𑣯𑣦ԜᎳᏔꓪω"],
  ["x", "᙮×⤫⤬⨯хᕁᕽ᙭╳𐌢𑣬ꞳΧⲬХⵝᚷꓫ𐊐𐊴𐌗𐔧χ"],
  ["y", "ɣᶌʏỿꭚγуүყ𑣜ΥⲨУҮᎩᎽꓬ𖽃𑢤𐊲"],
  ["z", "ᴢꮓ𑣄𐋵𑣥ΖᏃꓜ𑢩ʐ"],
];
/** Code points of the letter A in alphabets of enclosed letters. */
const FRAMED = [0x249c, 0x1f110, 0x1f130, 0x1f150, 0x1f170, 0x1f1e6];
const DIGITS: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "l",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
};

const LETTERS: ReadonlyMap<string, string> = new Map([
  ...ALIKE.flatMap(([letter, signs]) => [...signs].map((sign) => [sign, letter] as const)),
  ...FRAMED.flatMap((first) =>
    Array.from(
      { length: 26 },
      (_, at) => [String.fromCodePoint(first + at), String.fromCharCode(97 + at)] as const,
    ),
  ),
]);

/** Matches invisible characters, which could split a word without being seen. */
const UNSEEN = /[\p{Cf}\p{Mn}\p{Me}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Cc}\s]/gu;

/** Folds one character to a plain lower-case character, or to "" if it is invisible. */
export function plainSign(sign: string): string {
  if (sign >= " " && sign <= "~") return sign.toLowerCase();
  const known = LETTERS.get(sign);
  if (known !== undefined) return known;
  let plain = "";
  for (const part of sign.normalize("NFKD").replace(UNSEEN, ""))
    plain += LETTERS.get(part) ?? part.toLowerCase();
  return plain;
}

const OPENING = /(?!\{)[\p{Ps}\p{Pi}‹˂ᐸ⌈⌊]/u;
const CLOSING = /(?!\})[\p{Pe}\p{Pf}›˃ᐳ⌉⌋]/u;
const LABEL_MAX = 400;
/** Maximum number of lines of which each is examined. */
const LINES_MAX = 20_000;

/** Replaces letters that look the same, and pairs that look like one letter, by one spelling. */
const spelling = (letters: string): string =>
  letters.replaceAll("i", "l").replaceAll("m", "rn").replaceAll("w", "vv");

const CURLY: Readonly<Record<string, string>> = { "{": "{", "<": "{", "}": "}", ">": "}" };

/** Returns the letters and brackets of a line, because only these make a label. */
function skeleton(signs: Iterable<string>): string {
  let kept = "";
  for (const sign of signs) {
    for (const plain of plainSign(sign)) {
      const bracket = OPENING.test(plain) ? "[" : CLOSING.test(plain) ? "]" : CURLY[plain];
      kept += bracket ?? (/\p{L}/u.test(plain) ? plain : (DIGITS[plain] ?? ""));
    }
    if (kept.length >= LABEL_MAX) break;
  }
  return spelling(kept);
}

/** Matches the number of a list item before a bracket. */
const LIST_NUMBER = /^\s*\d{1,3}[.)](?=[^\p{L}\d]*[\p{Ps}<])/u;

const TURNED = /[\u202b\u202e\u2067]/;
const MIRRORED: Readonly<Record<string, string>> = { "[": "]", "]": "[", "{": "}", "}": "{" };

/** Reverses a line, because some characters reverse the reading direction. */
function turnLine(line: string): string {
  const shown = skeleton([...line].reverse());
  return shown.replace(/[[\]{}]/g, (bracket) => MIRRORED[bracket] ?? bracket);
}

/** Starts of the labels that the runtime writes between the lines of people. */
const LABELS = [
  "notice of the runtime",
  "summary of the earlier messages",
  "in reply to",
  "this changes an earlier",
  "sent with this",
  "a message without text",
  "cut here",
].map((label) => spelling(label.replaceAll(" ", "")));
const LABEL = `[[{]+(?:${LABELS.join("|")})`;
/** Matches `[from Ada]`. The name may be longer than the part of the line that is examined. */
const FROM = `\\[+${spelling("from")}(?=.*\\]|.{${LABEL_MAX - 20},})`;
/** In brackets that are common in code, matches only speakers that code would not contain. */
const SPEAKER = spelling("from(?:theperson|session|cron|hook|node|theowner)");
const BEGUN = new RegExp(`^[\\]}]*(?:${LABEL}|${FROM}|[[{]+${SPEAKER})`);
const LABEL_END = /[\]}]|$/;

/** Returns the end of a label of the runtime that begins at `at`, or undefined if none begins there. */
function labelEnd(letters: string, at: number): number | undefined {
  const begun = letters.slice(at, at + LABEL_MAX);
  const head = BEGUN.exec(begun)?.[0];
  if (head === undefined) return undefined;
  // A label that is split over lines ends at its bracket. If there is no bracket, only its start is quoted.
  const end = begun.slice(head.length).search(LABEL_END);
  return at + head.length + (head.length + end < begun.length ? end + 1 : 0);
}

/** Turns every line that looks like a line of the runtime into a quotation. */
export function quoteRuntimeLabels(text: string): string {
  const lines = text.split(LINE_BREAK_AFTER);
  if (lines.length > LINES_MAX) return lines.map((line) => `${QUOTE_MARK}${line}`).join("");
  const letters = lines.map((line) => skeleton(line.replace(LIST_NUMBER, "")));
  const all = letters.join("");
  let at = 0;
  let quotedTo = -1;
  return lines
    .map((line, index) => {
      const here = at;
      at += letters[index]?.length ?? 0;
      // A line without letters cannot start a label.
      const end = at === here ? undefined : labelEnd(all, here);
      if (end !== undefined) quotedTo = Math.max(quotedTo, end);
      const isTurned = TURNED.test(line) && labelEnd(turnLine(line), 0) !== undefined;
      return here < quotedTo || isTurned ? `${QUOTE_MARK}${line}` : line;
    })
    .join("");
}
