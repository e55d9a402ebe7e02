// Cleans text of an MCP server before a model, a log or a person reads it: the text is cut, and characters
// that hide or reorder text are removed. Secrets that the configuration or a sign-in gave the server are
// redacted from logs and errors (I14).

import type { McpServerSettings } from "../../core/shapes/settings/settings.ts";
import { head } from "../../core/text/cut.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { isSecretName } from "../../core/text/redact/shapes.ts";

/** Control characters except tab and line feed, and characters that are invisible or that reorder text. */
const HIDDEN =
  /(?![\t\n])\p{Cc}|[\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Removes hidden characters and cuts the text. */
export function plainWords(text: string, charsMax: number): string {
  // Cuts the text first, to limit the work.
  const seen = text.slice(0, charsMax * 2).replaceAll(HIDDEN, "");
  const isWhole = seen.length <= charsMax && text.length <= charsMax * 2;
  return isWhole ? seen.toWellFormed() : `${head(seen, charsMax - 1)}…`;
}

export function plainLine(text: string, charsMax: number): string {
  return plainWords(text.replaceAll(/\s+/g, " ").trim(), charsMax);
}

export type Mask = (text: string) => string;

/** The sign-ins of a server. Their secrets change. */
type Secrets = { readonly secrets: readonly string[] } | undefined;

/** Minimum length of a redacted value; a shorter one could be an ordinary word. */
const SECRET_MIN_CHARS = 6;
const MASK = "[redacted]";

/** Returns a function that redacts these values. */
export function hiding(values: readonly string[]): Mask {
  // For `Bearer <token>`, both the whole value and the token are redacted. Values that would break JSON are
  // skipped.
  const parts = values.flatMap((value) => [value, ...value.split(/[\s=]+/)]);
  const hidden = [...new Set(parts)].filter(
    (value) => value.length >= SECRET_MIN_CHARS && !/["\\]/.test(value),
  );
  const longestFirst = hidden.sort((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((told, value) => told.replaceAll(value, MASK), text);
}

/**
 * Returns a function that redacts logs and errors: this server's configured values, the secrets of its
 * sign-ins, and all text that looks like a secret.
 */
export function maskOf({ reach }: McpServerSettings, redactor: Redactor, signIn?: Secrets): Mask {
  const mask = hiding(
    reach.kind === "stdio"
      ? [...Object.values(reach.env), ...reach.args]
      : [...Object.values(reach.headers), ...queryOf(reach.url)],
  );
  return (text) => redactor.mask(mask(hiding(signIn?.secrets ?? [])(text)));
}

/**
 * Returns a function that redacts a server's secrets in results. It keeps other values of the server's
 * environment, for example a folder, because results may contain them for good reason.
 */
export function secretsMaskOf({ reach }: McpServerSettings, signIn?: Secrets): Mask {
  if (reach.kind === "http") return hiding([...Object.values(reach.headers), ...(signIn?.secrets ?? [])]);
  return hiding(Object.entries(reach.env).flatMap(([name, value]) => (isSecretName(name) ? [value] : [])));
}

function queryOf(url: string): string[] {
  const { search, searchParams } = new URL(url);
  return [search.slice(1), ...searchParams.values()];
}
