// Hides the secrets in the text of a configuration file, and puts them back into an edited text.
// HS1: a hidden secret is shown as `[hidden 0123456789]`. The digits depend on the secret and on its key, so
//      they stay the same until the secret changes, and can't be guessed without the gateway's token.
// HS2: a secret can only be put back under the key from which it was hidden.
// HS3: a text in which a secret may remain is not shown at all.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Json5Place, json5Places, unescapeText } from "../../core/text/json5-places.ts";
import { MASK } from "../../core/text/redact/mask.ts";
import { isSecretName } from "../../core/text/redact/shapes.ts";
import type { Path } from "../../core/text/value-path.ts";
import { hasSecretWord, isSecretPath } from "../describe.ts";
import { withoutReferences } from "../source.ts";

/** The gateway's functions that need its token or its secrets. */
export interface Sealing {
  /** Returns a keyed hash, which nobody can compute without the gateway's token. */
  readonly seal: (text: string) => string;
  /** Redacts credentials in a text. */
  readonly mask: (text: string) => string;
}

interface Hidden {
  readonly raw: string;
  /**
   * `key NAME` for a quoted value, else the kind of the place. A secret can be put back only in an equal
   * place (HS2).
   */
  readonly place: string;
  /**
   * The quote or the comment mark before the secret. After another mark, a character of the secret could end
   * the text early.
   */
  readonly mark: string;
}

export interface HiddenText {
  readonly text: string;
  /** The hidden parts. Each key is the text that replaces the part. */
  readonly values: ReadonlyMap<string, Hidden>;
}

interface Span extends Hidden {
  readonly start: number;
  readonly end: number;
  readonly shown: string;
}

const SHOWN = /\[hidden [0-9a-f]{10}\]/g;
const SCHEME = /^(basic|bearer|bot|token)?\s*$/i;
const SEAL_CHARS = 10;
const BETWEEN = "\n\u0000\n";

function nameOf(path: Path): string {
  return String(path.findLast((part) => typeof part === "string") ?? "");
}

function placeName({ kind, path }: Pick<Json5Place, "kind" | "path">): string {
  return kind === "text" ? `key ${nameOf(path)}` : kind;
}

/**
 * Returns whether only the origin of the address at this path is shown, as in the effective configuration.
 */
const showsOrigin = (path: Path): boolean =>
  (path.includes("outgoing") && nameOf(path) === "url") || nameOf(path) === "endpoint";

/**
 * Replaces hidden secrets and references to variables by the mask, so that redaction leaves them as they are.
 */
const maskHidden = (text: string): string => withoutReferences(text.replaceAll(SHOWN, MASK), MASK);

/** Returns true if redaction finds a credential that is neither hidden nor a reference to a variable. */
function tells(text: string, { mask }: Sealing): boolean {
  return mask(maskHidden(text)) !== maskHidden(text);
}

/**
 * Returns the result of `tells` for each text. Redacts all texts at once, which is much faster than one by
 * one.
 */
function tellingOnes(texts: readonly string[], sealing: Sealing): boolean[] {
  const before = texts.map(maskHidden);
  const after = sealing.mask(before.join(BETWEEN)).split(BETWEEN);
  // If redaction removed a separator, because a secret has several lines, redact each text separately.
  if (after.length !== before.length) return texts.map((text) => tells(text, sealing));
  return after.map((text, at) => text !== before[at]);
}

/** Returns the position of the text inside its quotes. */
function insideOf(raw: string, { start, end }: Json5Place): [number, number] {
  const isClosed = raw.length > 1 && raw.endsWith(raw.charAt(0));
  return [start + 1, isClosed ? end - 1 : end];
}

/** Returns the text of a comment or the value of a string, or "" for any other place. */
function contentOf(text: string, place: Json5Place): string {
  const raw = text.slice(place.start, place.end);
  if (place.kind === "comment") return raw.slice(2);
  return place.kind === "text" ? unescapeText(text.slice(...insideOf(raw, place))) : "";
}

/** Returns true if a comment contains a setting with a secret. */
function isSecretSetting(comment: string): boolean {
  const setting = `{${comment}`;
  return json5Places(setting).some((place) => {
    const isValue = place.kind === "text" || place.kind === "word";
    return isValue && secretIn(setting, place, { before: "", isTelling: false }) !== undefined;
  });
}

/**
 * Returns the comments that must be hidden because of their neighbours. These are comments in an object whose
 * values are all secret, and consecutive comment lines that together contain a secret setting.
 */
function hiddenComments(
  text: string,
  places: readonly Json5Place[],
  contents: readonly string[],
): ReadonlySet<Json5Place> {
  const hidden = new Set<Json5Place>();
  for (let at = 0; at < places.length; at += 1) {
    const first = at;
    while (places[at + 1]?.kind === "comment" && places[at]?.kind === "comment" && isApart(text, places, at))
      at += 1;
    if (places[at]?.kind !== "comment") continue;
    const isAmong = [nearest(places, first, -1, isValue), nearest(places, at, 1, isValue)].some(
      (one) => one !== undefined && isSecretPath([...one.path.slice(0, -1), ""]),
    );
    if (isAmong || isSecretSetting(contents.slice(first, at + 1).join("\n")))
      for (const place of places.slice(first, at + 1)) hidden.add(place);
  }
  return hidden;
}

/** Returns the nearest place before (-1) or after (1) an index for which `fits` returns true. */
function nearest(
  places: readonly Json5Place[],
  from: number,
  step: 1 | -1,
  fits: (place: Json5Place) => boolean,
): Json5Place | undefined {
  for (let at = from + step; at >= 0 && at < places.length; at += step) {
    const place = places[at];
    if (place !== undefined && fits(place)) return place;
  }
  return undefined;
}

const isValue = ({ kind }: Json5Place): boolean => kind === "text" || kind === "word";

/** Returns true if there is only white space between a place and the next one. */
function isApart(text: string, places: readonly Json5Place[], at: number): boolean {
  return text.slice(places[at]?.end, places[at + 1]?.start).trim() === "";
}

interface Around {
  /** The text of the previous item in the same list. */
  readonly before: string;
  /** True if redaction would change the content of the place. */
  readonly isTelling: boolean;
}

/** Returns start and end of the secret in a place. Returns undefined if the place has none. */
function secretIn(text: string, place: Json5Place, around: Around): [number, number] | undefined {
  const { kind, start, end, path } = place;
  const raw = text.slice(start, end);
  const content = contentOf(text, place);
  const hides = around.isTelling || hasSecretWord(content, around.before);
  if (kind === "comment") {
    const isClosedBlock = raw.startsWith("/*") && raw.endsWith("*/") && raw.length > 3;
    const hidesIt = hides || isSecretSetting(content);
    return hidesIt ? [start + 2, isClosedBlock ? end - 2 : end] : undefined;
  }
  const isTokenItem = path.at(-2) === "tokens" && typeof path.at(-1) === "number";
  // Usually the last key is the name of a secret, but an invalid file may have an object in its place.
  const isBelowSecret = path.some((_, at) => isSecretPath(path.slice(0, at + 1)));
  const isSecret = isBelowSecret || isSecretName(nameOf(path)) || isTokenItem;
  if (kind === "word") return isSecret && !/^(null|true|false)$/.test(raw) ? [start, end] : undefined;
  if (kind !== "text") return undefined;
  const inner = insideOf(raw, place);
  if (isSecret) return SCHEME.test(withoutReferences(content)) ? undefined : inner;
  const origin = showsOrigin(path) ? /^\w+:\/\/[^/?#@"']*[/?#]/.exec(raw.slice(1)) : null;
  const shown = inner[0] + (origin?.[0].length ?? 0);
  if (origin !== null && shown < inner[1]) return [shown, inner[1]];
  return hides ? inner : undefined;
}

/** Returns the quote or the comment mark with which a place begins. */
function markOf(text: string, { kind, start }: Pick<Json5Place, "kind" | "start">): string {
  return kind === "text" || kind === "comment" ? text.slice(start, start + (kind === "text" ? 1 : 2)) : "";
}

function spanOf(text: string, [start, end]: [number, number], at: Json5Place, { seal }: Sealing): Span {
  const raw = text.slice(start, end);
  const place = placeName(at);
  const mark = markOf(text, at);
  const shown = `[hidden ${seal(`${place}\n${mark}${raw}`).slice(0, SEAL_CHARS)}]`;
  return { start, end, raw, place, mark, shown };
}

/** Returns the text with the hidden spans replaced. */
function renderText(text: string, spans: readonly Span[]): string {
  let [out, at] = ["", 0];
  for (const { start, end, shown } of spans) {
    out += text.slice(at, start) + shown;
    at = end;
  }
  return out + text.slice(at);
}

/** Hides all values on each line in which redaction still finds a credential. */
function withLines(
  text: string,
  places: readonly Json5Place[],
  first: readonly Span[],
  sealing: Sealing,
): Span[] {
  const spans = new Map(first.map((span) => [span.start, span]));
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const lines = renderText(text, first).split("\n");
  // Lines can be matched only if their number is unchanged, which it is not if a block comment of several
  // lines was hidden. If they can't be matched, every value is hidden.
  const fits = lines.length === starts.length;
  const telling = fits ? tellingOnes(lines, sealing) : starts.map(() => true);
  let line = 0;
  for (const place of places) {
    while ((starts[line + 1] ?? Number.POSITIVE_INFINITY) <= place.start) line += 1;
    if (telling[line] !== true || (place.kind !== "text" && place.kind !== "word")) continue;
    const raw = text.slice(place.start, place.end);
    const inner = place.kind === "text" ? insideOf(raw, place) : ([place.start, place.end] as const);
    spans.set(inner[0], spanOf(text, [...inner], place, sealing));
  }
  return [...spans.values()].sort((a, b) => a.start - b.start);
}

/** Returns the text with its secrets hidden (HS1). */
export function hideSecrets(text: string, sealing: Sealing): Result<HiddenText> {
  const places = json5Places(text);
  const contents = places.map((place) => contentOf(text, place));
  const telling = tellingOnes(contents, sealing);
  const comments = hiddenComments(text, places, contents);
  let spans = places.flatMap((place, at) => {
    const last = nearest(places, at, -1, ({ kind }) => kind !== "comment");
    const isItem = typeof place.path.at(-1) === "number" && last?.kind === "text";
    const isTelling = telling[at] === true || comments.has(place);
    const around = { before: isItem ? contentOf(text, last) : "", isTelling };
    const found = secretIn(text, place, around);
    return found === undefined ? [] : [spanOf(text, found, place, sealing)];
  });
  if (tells(renderText(text, spans), sealing)) spans = withLines(text, places, spans, sealing);
  const shown = renderText(text, spans);
  if (tells(shown, sealing))
    return fail("file_problem", "the file contains a secret that cannot be hidden here", {
      hint: "Edit it with an editor on the gateway's machine.",
    });
  return ok({ text: shown, values: new Map(spans.map((span) => [span.shown, span])) });
}

/** Returns the text with the secrets of the file put back (HS2). */
export function revealSecrets(text: string, { values }: Pick<HiddenText, "values">): Result<string> {
  const places = json5Places(text).filter(({ kind }) => kind === "text" || kind === "comment");
  let next = 0;
  let problem: { at: number; words: string } | undefined;
  const whole = text.replaceAll(SHOWN, (shown: string, at: number) => {
    while ((places[next]?.end ?? text.length) <= at) next += 1;
    const near = places[next];
    const around =
      near !== undefined && near.start <= at ? near : { kind: "word" as const, path: [], start: at };
    const hidden = values.get(shown);
    if (hidden === undefined)
      problem ??= {
        at,
        words: `${shown} stands for no secret in the file. Type the value, or read the file again`,
      };
    else if (placeName(around) !== hidden.place || markOf(text, around) !== hidden.mark)
      problem ??= { at, words: `${shown} belongs to another ${hidden.place}. Type the value` };
    return hidden?.raw ?? shown;
  });
  if (problem === undefined) return ok(whole);
  return fail("invalid_config", `line ${text.slice(0, problem.at).split("\n").length}: ${problem.words}`);
}
