// Owns what is masked when a transcript or a log line leaves the gateway (I14). What is stored stays whole.
// RD1: masking twice is masking once.
// RD2: only what looks like a credential is touched: ordinary prose passes unchanged.
// RD3: time is linear in the text: every repetition that can fail is bounded.

import type { Message } from "./message.ts";

const MASK = "[redacted]";

/** Names whose value is a credential, wherever they stand at the end of a longer name (`DB_PASSWORD`). */
const SECRET_NAME =
  "(?:password|passwd|passphrase|pwd|secret|token|credentials?|access[_-]?key[_-]?id" +
  "|(?:api|access|account|private|secret|signing|encryption)[_-]?key)";

/** Fields of JSON that are credentials as a whole; in a text the same words begin sentences. */
const SECRET_FIELD = new RegExp(`(?:${SECRET_NAME}|authorization|cookie)$`, "i");

/** Whether the value of a variable or a field of this name is a credential. */
export function isSecretName(name: string): boolean {
  return SECRET_FIELD.test(name);
}

interface Mask {
  readonly find: RegExp;
  readonly put: string;
}

const whole = (find: RegExp): Mask => ({ find, put: MASK });

/** A secret's name, then `shape`, whose first group ends before the value. */
const named = (shape: string, put = `$1${MASK}`): Mask => ({
  find: new RegExp(`(${SECRET_NAME}${shape}`, "gi"),
  put,
});

/** Variables and calls of a program are no values. */
const PLAIN = "(?![$<{(%])";
/** One character of a value without quotation marks. */
const VALUE = "[^\\s\"'`,;&|<>()[\\]{}]";
/** Its last one: a backslash there belongs to the quotation mark that follows it. */
const LAST = "[^\\s\"'`,;&|<>()[\\]{}\\\\]";
/** At least so many of them, as group 2, and all that follow; no call of a program. */
const value = (charsMin: number): string =>
  `(?=(${VALUE}{${charsMin - 1},4095}${LAST}))\\2(?!\\()(?:${VALUE}*${LAST})?`;

/** Prose has words; a credential has a digit, or is longer than a word. */
const UNLIKE_PROSE = `(?=[^\\s0-9]{0,100}[0-9]|${VALUE}{24})`;

/** A token starts behind no letter or digit (`task-…` is not `sk-…`) and goes on to its word's end. */
const token = (shape: string): Mask => whole(new RegExp(`(?<![A-Za-z0-9])${shape}[A-Za-z0-9_-]*`, "g"));

const KEY_BEGIN = "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----";

const MASKS: readonly Mask[] = [
  // Private keys: a whole block; then one whose end was cut off. What is masked already is no part of one.
  whole(new RegExp(`${KEY_BEGIN}(?:(?!-----|\\[redacted\\])[^]){0,20000}-----END [A-Z0-9 ]{0,60}-----`, "g")),
  whole(new RegExp(`${KEY_BEGIN}(?:(?:\\s|\\\\[nr]){1,4}[A-Za-z0-9+/=]{8,})+`, "g")),
  // user:password@ in a URL: the password alone.
  {
    find: /\b([a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@?#]{0,256}:)(?![0-9]{1,5}[?#])[^\s/]{1,512}@/gi,
    put: `$1${MASK}@`,
  },
  // JSON Web Tokens.
  token("eyJ[\\w-]{8,4096}\\.[\\w-]{8,8192}\\.[\\w-]{8,}"),
  // OpenAI, Anthropic and others that took over their shape. A digit is asked for: slugs of words have none.
  token("sk-(?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{16,}"),
  token("[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}"),
  token("gh[pousr]_[A-Za-z0-9]{20,}"),
  token("github_pat_[A-Za-z0-9_]{20,}"),
  token("glpat-[A-Za-z0-9_-]{20,}"),
  token("npm_[A-Za-z0-9]{30,}"),
  token("hf_[A-Za-z0-9]{30,}"),
  token("(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
  token("AIza[0-9A-Za-z_-]{35}"),
  token("ya29\\.[0-9A-Za-z_-]{20,}"),
  token("xox[a-z]-[A-Za-z0-9-]{10,}"),
  token("xapp-[A-Za-z0-9-]{10,}"),
  token("SG\\.[A-Za-z0-9_-]{16,64}\\.[A-Za-z0-9_-]{16,}"),
  token("(?:gsk_|xai-|whsec_|shp(?:at|ca|pa|ss)_|do[opr]_v1_)[A-Za-z0-9]{20,}"),
  token("pypi-[A-Za-z0-9_-]{20,}"),
  token("AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
  // Web hooks whose address alone is the right to post.
  {
    find: /(\bhooks\.slack\.com\/[a-z]{1,20}\/|\bdiscord(?:app)?\.com\/api\/webhooks\/)[A-Za-z0-9/_-]{20,}/g,
    put: `$1${MASK}`,
  },
  // Telegram and Discord bots. The first is met inside URLs, right behind the word "bot".
  whole(/(?<![0-9])[0-9]{8,10}:(?![0-9a-f]{8}-)[A-Za-z0-9_-]{30,}/g),
  token("[MNO][A-Za-z0-9_-]{22,27}\\.[A-Za-z0-9_-]{6}\\.[A-Za-z0-9_-]{27,}"),
  // Headers. The scheme may be followed by prose ("bearer instruments"): a credential is no plain word.
  {
    find: new RegExp(
      "((?:[Aa]uthorization|AUTHORIZATION)[\"']?[ \\t]{0,3}[:=][ \\t]{0,3}[\"']?" +
        "(?:[Bb]asic|[Bb]earer|[Tt]oken|[Bb]ot)[ \\t]{1,3})" +
        "(?=[^\\sA-Z0-9=]{0,100}[A-Z0-9=])[^\\s\"',;[]{8,}",
      "g",
    ),
    put: `$1${MASK}`,
  },
  { find: /(\bbearer[ \t]{1,3})(?=[A-Za-z._~+/=-]{0,100}[0-9])[A-Za-z0-9._~+/=-]{12,}/gi, put: `$1${MASK}` },
  // What a browser brings along: everything behind the first name.
  { find: /(\bcookie["']?:[ \t]{0,3}["']?[\w.-]{1,100}=)[^\s"'\\][^\r\n"'\\]{5,}/gi, put: `$1${MASK}` },
  // name = "value" and "name": "value".
  named(`["']?[ \\t]{0,3}[:=][ \\t]{0,3})(["'])(?:(?!\\2)[^\\\\\\n]|\\\\.){1,8192}\\2`, `$1$2${MASK}$2`),
  // One that is too long to look for its end.
  named(`["']?[ \\t]{0,3}[:=][ \\t]{0,3})(["'])[^"'\\n]{8192,}`, `$1$2${MASK}`),
  // The same inside a JSON string, where the quotation marks are escaped.
  named(`\\\\{1,3}["'][ \\t]{0,3}:[ \\t]{0,3}\\\\{1,3}["'])[^"'\\\\\\n]+`),
  // name=value.
  named(`[ \\t]{0,3}=)${PLAIN}${value(6)}`),
  // name: value, name:value and name = value.
  named(`(?:[ \\t]{0,3}[:=][ \\t]{1,3}|:))${UNLIKE_PROSE}${PLAIN}${value(8)}`),
  // --name value.
  {
    find: new RegExp(`(--[a-z-]{0,40}?${SECRET_NAME}[ \\t]{1,3})${UNLIKE_PROSE}${PLAIN}${value(8)}`, "gi"),
    put: `$1${MASK}`,
  },
];

/** What a mask leaves may be something else's beginning; so often at most all of them are put on again. */
const PASSES_MAX = 8;

/** The text with everything that looks like a credential masked. */
export function redactSecrets(text: string): string {
  let before = text;
  for (let passes = 1; ; passes += 1) {
    const masked = MASKS.reduce((so, { find, put }) => so.replace(find, put), before);
    if (masked === before || passes === PASSES_MAX) return masked;
    before = masked;
  }
}

/** A shorter one is a word like any other: to mask it would make the text unreadable. */
const KNOWN_CHARS_MIN = 6;

/**
 * Masks what looks like a credential, and these values wherever they stand, whatever they look like: as they
 * are, in a string of JSON, in an address.
 */
export class Redactor {
  readonly #known = new Set<string>();
  #longestFirst: readonly string[] = [];

  learn(secrets: Iterable<string>): void {
    for (const secret of secrets) {
      if (secret.length < KNOWN_CHARS_MIN) continue;
      const asJson = JSON.stringify(secret).slice(1, -1);
      const asText = secret.toWellFormed();
      for (const form of [secret, asJson, encodeURIComponent(asText)]) this.#known.add(form);
    }
    // One may hold another: what is left of it would be told.
    this.#longestFirst = [...this.#known].sort((left, right) => right.length - left.length);
  }

  mask(text: string): string {
    const told = this.#longestFirst.reduce((so, secret) => so.replaceAll(secret, MASK), text);
    return redactSecrets(told);
  }
}

const DEPTH_MAX = 64;

/** JSON with its strings masked; the value of a field named like a secret is masked whatever it is. */
function redactJson(value: unknown, field: string, depth: number): unknown {
  if (typeof value === "string") {
    return isSecretName(field) && value !== "" ? MASK : redactSecrets(value);
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEPTH_MAX) return MASK;
  if (Array.isArray(value)) return value.map((item) => redactJson(item, field, depth + 1));
  const isImage = "type" in value && value.type === "image";
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) =>
      isImage && name === "data" ? [name, ""] : [name, redactJson(item, name, depth + 1)],
    ),
  );
}

type Block = Message["content"][number];

function redactBlock(block: Block): Block {
  switch (block.type) {
    case "text":
      return { type: "text", text: redactSecrets(block.text) };
    case "thinking":
      return {
        type: "thinking",
        thinking: redactSecrets(block.thinking),
        ...(block.redacted === undefined ? {} : { redacted: block.redacted }),
      };
    case "image":
      return {
        ...{ type: "image", data: "", mimeType: block.mimeType },
        bytes: block.bytes ?? Math.floor((block.data.replace(/=+$/, "").length * 3) / 4),
      };
    case "toolCall":
      return {
        type: "toolCall",
        id: block.id,
        name: block.name,
        arguments: redactJson(block.arguments, "", 0) as Record<string, unknown>,
      };
  }
}

/** A message on its way out: credentials masked, image data and providers' signatures left out. */
export function redactMessage(message: Message): Message {
  const content = message.content.map(redactBlock);
  const more: Record<string, unknown> = {};
  if (message.role === "assistant" && message.errorMessage !== undefined) {
    more.errorMessage = redactSecrets(message.errorMessage);
  }
  if (message.role === "user" && message.senderName !== undefined) {
    more.senderName = redactSecrets(message.senderName);
  }
  if (message.role === "toolResult" && message.details !== undefined) {
    more.details = redactJson(message.details, "", 0);
  }
  return { ...message, content, ...more } as Message;
}
