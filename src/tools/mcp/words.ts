// Owns what becomes of words that an outside server says, before a model, a log or a person reads them.
// W1: bounded, and without characters that hide or reorder text.
// W2: what the configuration gave the server as a secret is not repeated by us in a log or an error (I14).

import type { Redactor } from "../../core/redact.ts";
import { isSecretName } from "../../core/redact-shapes.ts";
import type { McpServerSettings } from "../../core/settings.ts";

/** Control characters but tab and line feed, and characters that can't be seen or turn the text around. */
const HIDDEN =
  /(?![\t\n])\p{Cc}|[\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Words without what hides, cut at a length. */
export function plainWords(text: string, charsMax: number): string {
  // Looked through no further than could be shown.
  const seen = text.slice(0, charsMax * 2).replaceAll(HIDDEN, "");
  return seen.length > charsMax || text.length > charsMax * 2
    ? `${seen.slice(0, charsMax).toWellFormed()}…`
    : seen.toWellFormed();
}

/** One line of it. */
export function plainLine(text: string, charsMax: number): string {
  return plainWords(text.replaceAll(/\s+/g, " ").trim(), charsMax);
}

export type Mask = (text: string) => string;

/** A shorter value is a word like any other. */
const SECRET_MIN_CHARS = 6;
const MASK = "[redacted]";

function hiding(values: readonly string[]): Mask {
  // `Bearer <token>` is a value, and so is the token alone. What would break JSON is not looked for.
  const parts = values.flatMap((value) => [value, ...value.split(/[\s=]+/)]);
  const hidden = [...new Set(parts)].filter(
    (value) => value.length >= SECRET_MIN_CHARS && !/["\\]/.test(value),
  );
  const longestFirst = hidden.sort((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((told, value) => told.replaceAll(value, MASK), text);
}

/** For logs and errors: hides everything that may be a secret of this server, and whatever looks like one. */
export function maskOf({ reach }: McpServerSettings, redactor: Redactor): Mask {
  const mask = hiding(
    reach.kind === "stdio"
      ? [...Object.values(reach.env), ...reach.args]
      : [...Object.values(reach.headers), ...queryOf(reach.url)],
  );
  return (text) => redactor.mask(mask(text));
}

/** For results, which may well speak of the folder that stands in the environment: hides secrets alone. */
export function secretsMaskOf({ reach }: McpServerSettings): Mask {
  if (reach.kind === "http") return hiding(Object.values(reach.headers));
  return hiding(Object.entries(reach.env).flatMap(([name, value]) => (isSecretName(name) ? [value] : [])));
}

function queryOf(url: string): string[] {
  const { search, searchParams } = new URL(url);
  return [search.slice(1), ...searchParams.values()];
}
