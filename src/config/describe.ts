// Formats settings for display, and collects the secrets in them. Both follow the rules of disclosure.ts.
// G5: neither secrets nor settings without a rule are shown.

import { isObject } from "../core/json.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import { isSecretName } from "../core/text/redact/shapes.ts";
import type { Path } from "../core/text/value-path.ts";
import { applyRules, DISCLOSURE, namesRuled } from "./disclosure.ts";
import type { Rule } from "./schema/setting.ts";
import type { Env, Tree } from "./source.ts";

const SET = "(set)";
const NONE = "(none)";

const parseUrl = (address: string): URL | undefined => (URL.canParse(address) ? new URL(address) : undefined);

/** Returns the visible form of a value, or undefined if nothing may be shown. */
function showValue(rule: Rule, value: unknown): unknown {
  if (rule === "optional secret") return value === undefined || value === "" ? NONE : SET;
  if (value === undefined || rule === "show") return value;
  if (rule === "secret") return value === "" ? NONE : SET;
  if (rule === "place" || rule === "origin") {
    const url = parseUrl(String(value));
    if (url === undefined) return SET;
    return rule === "origin" ? url.origin : `${url.protocol}//${url.host}${url.pathname.replace(/^\/$/, "")}`;
  }
  if (rule === "names")
    return isObject(value) ? Object.fromEntries(Object.keys(value).map((name) => [name, SET])) : SET;
  if (!Array.isArray(value)) return SET;
  return rule === "count" ? `(${value.length})` : [value[0], `(${value.length - 1})`];
}

/** Shows a command as a program and the number of its arguments. */
function withProgram(one: Tree): Tree {
  return Array.isArray(one.command) ? { ...one, command: one.command[0], args: one.command[1] } : one;
}

/** Returns the settings as `config.check` shows them. For a secret, shows only whether it is set. */
export function describeSettings(settings: Settings): Record<string, unknown> {
  const whole = applyRules(DISCLOSURE, settings, showValue) as { [K in keyof Settings]: Tree & Tree[] };
  const { gateway, tools, agents, channels } = whole;
  const mcp = tools.mcp as { servers: { reach: Tree }[] };
  // Shows an MCP server as in the file, which has different keys for a program and an address.
  const servers = mcp.servers.map(({ reach: { kind: _, ...reach }, ...server }) => ({ ...server, ...reach }));
  return {
    ...whole,
    gateway:
      settings.gateway.token === undefined ? { ...gateway, token: "(generated at first start)" } : gateway,
    agents: agents.map(({ runtime, ...agent }) => ({
      ...agent,
      ...(isObject(runtime) && { runtime: withProgram(runtime) }),
    })),
    channels: channels.map(withProgram),
    tools: { ...tools, mcp: { ...mcp, servers } },
  };
}

/** Names of settings that are secrets. The configuration file uses the same names. */
const SECRETS = new Set(namesRuled(["secret", "optional secret"]));
const OF_SECRETS = new Set(namesRuled(["names"]));

/** Returns whether the value at this path of the file is, or may contain, a secret. */
export function isSecretPath(path: Path): boolean {
  return SECRETS.has(String(path.at(-1))) || path.some((part) => OF_SECRETS.has(String(part)));
}

/** Returns whether a word is so long and so random that it is probably a secret. */
function looksRandom(word: string): boolean {
  if (!/^[\w.~+=-]{20,}$/.test(word)) return false;
  return /^[0-9a-f]{24,}$/i.test(word) || (/[a-z]/.test(word) && /[A-Z]/.test(word) && /[0-9]/.test(word));
}

/** Minimum length of a secret word; a shorter one may be a scheme like `Bearer`. */
const SECRET_CHARS_MIN = 8;

/** Returns the secrets in a value. In `Bearer <token>`, both the whole value and the token are secrets. */
function inValue(name: string, value: string): string[] {
  const words = [value, ...value.split(/[\s,=]+/)];
  return words.filter((word) => (isSecretName(name) ? word.length >= SECRET_CHARS_MIN : looksRandom(word)));
}

/** Returns the secrets in an address: the password, and other parts that look random (`looksRandom`). */
function inAddress(address: string): string[] {
  const url = parseUrl(address);
  if (url === undefined) return [];
  const { username, password, pathname, search, hash } = url;
  const query = [...url.searchParams.values()].flatMap((value) => inValue("secret", value));
  const words = `${username}/${pathname}${search}${hash}`.split(/[/?&=#]/).filter(looksRandom);
  return [password, decodeText(password), ...query, ...words].filter((one) => one !== "");
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the secrets in a command: values of options such as `--api-key VALUE` and `--api-key=VALUE`. */
function inArguments(words: readonly string[]): string[] {
  return words.flatMap((word, index) => {
    const [name = "", ...value] = word.split("=");
    if (value.length > 0) return inValue(name, value.join("="));
    return inValue(words[index - 1]?.startsWith("-") === true ? (words[index - 1] ?? "") : "", word);
  });
}

/**
 * Returns whether a text contains a secret. `before`: the previous text in the same list, such as
 * `--api-key`.
 */
export function hasSecretWord(value: string, before: string): boolean {
  const words = value.split(/[\s"',=]+/);
  if (words.some(looksRandom) || inAddress(value).length > 0) return true;
  return inArguments([before, value]).some((secret) => value.includes(secret));
}

function secretsIn(rule: Rule, value: unknown): string[] {
  if (value === undefined || value === "" || rule === "show") return [];
  if (rule === "secret" || rule === "optional secret") return [String(value), ...inAddress(String(value))];
  if (rule === "place" || rule === "origin") return inAddress(String(value));
  const values: unknown[] = Object.values(value ?? {});
  if (rule === "program" || rule === "count")
    return inArguments(values.filter((one) => typeof one === "string"));
  return Object.entries(value ?? {}).flatMap(([name, one]) => inValue(name, String(one)));
}

/** Returns all secrets of these settings, to be redacted in the log. */
export function secretsOf(settings: Settings): string[] {
  const found: string[] = [];
  applyRules(DISCLOSURE, settings, (rule, value) => void found.push(...secretsIn(rule, value)));
  return found;
}

/** Variables in which a shell keeps names of folders. They look like passwords by name. */
const SHELL_FOLDERS = ["PWD", "OLDPWD"];

/** Returns the secrets of the environment: passwords in addresses, values with secret names, headers. */
export function secretsOfEnvironment(env: Env): string[] {
  return Object.entries(env).flatMap(([name, value = ""]) => {
    const isSecret = (isSecretName(name) && !SHELL_FOLDERS.includes(name)) || /_HEADERS$/.test(name);
    return isSecret ? inValue("secret", value) : inAddress(value);
  });
}
