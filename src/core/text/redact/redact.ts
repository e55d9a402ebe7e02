// Redacts credentials in transcripts and log lines that leave the gateway (I14). Stored data does not change.
// RD1: redacting twice gives the same result as redacting once.
// RD2: only text that looks like a credential, or that is a known value, changes. Ordinary prose does not.
// RD3: the work is linear in the length of the text. See KV1 of src/core/text/redact/known.ts, and SH1 of
//      src/core/text/redact/shapes.ts.
// RD5: `beginning` cuts before it redacts, and still leaves no part of a secret at the cut.
// RD6: `whole` and `start` return the same text as `mask`, but process long texts in pieces and let other
//      work run in between.

import { isObject, jsonWithin } from "../../json.ts";
import { optional } from "../../optional.ts";
import type { Pace, PaceOf } from "../../pace.ts";
import type { Message } from "../../shapes/message.ts";
import { head } from "../cut.ts";
import { LongText } from "../text-delta.ts";
import { KnownValues } from "./known.ts";
import { MASK, maskOf } from "./mask.ts";
import { isSecretName, maskShapes, type Work } from "./shapes.ts";
import { MaskStream } from "./stream.ts";

/**
 * Minimum length of a known value. A shorter one could be an ordinary word, and masking it would make texts
 * unreadable.
 */
const KNOWN_CHARS_MIN = 6;
/**
 * Number of characters read beyond the requested length, enough to recognise nearly every credential at its
 * end.
 */
const MARGIN_CHARS = 1_024;
/**
 * Number of characters that `line` reads for each character of its result, because it joins several blanks
 * into one.
 */
const BLANKS_MAX = 4;
/** Texts longer than this are masked in pieces of this length. */
export const LONG_CHARS = 64 * 1024;
/**
 * Maximum number of windows (starts of the text) that `beginning` reads. Each is twice as long as the one
 * before.
 */
const WINDOWS_MAX = 4;

export type { MaskStream };

/** Redacted start of a text. */
export interface Beginning {
  readonly text: string;
  /** True if `text` is the whole text, not only its beginning. */
  readonly whole: boolean;
}

export type Hide = (text: string) => string;

/**
 * Masks text that looks like a credential. Also masks known values in any form: plain, in a JSON string, or
 * in a URL.
 */
export class Redactor {
  readonly #forms = new Set<string>();
  /** Search structure for the known values. After a value was added, it is rebuilt for the next text. */
  #known: KnownValues | undefined;
  #paceOf: PaceOf = () => () => undefined;

  constructor(secrets: Iterable<string>) {
    this.learn(secrets);
  }

  learn(secrets: Iterable<string>): void {
    const before = this.#forms.size;
    for (const secret of secrets) {
      if (secret.length < KNOWN_CHARS_MIN) continue;
      const asJson = jsonWithin(secret);
      const asText = secret.toWellFormed();
      for (const form of [secret, asJson, encodeURIComponent(asText)]) this.#forms.add(form);
    }
    if (this.#forms.size > before) this.#known = undefined;
  }

  /** Sets how the redaction of long texts lets other work run. */
  pacedBy(paceOf: PaceOf): void {
    this.#paceOf = paceOf;
  }

  /** Returns the pace for work on many texts that starts now. */
  pace(): Pace {
    return this.#paceOf("with this step");
  }

  /** Returns the text with all credentials masked. `work` counts the examined characters. */
  mask(text: string, work: Work = { steps: 0 }): string {
    return maskShapes(this.#values().mask(text, work, false), work, false);
  }

  /** Returns the same text as `mask`, but lets other work run. */
  async whole(text: string): Promise<string> {
    return (await this.start(text, Number.POSITIVE_INFINITY)).text;
  }

  /** Returns at most `charsMax` characters of the text that `mask` returns, but lets other work run. */
  async start(text: string, charsMax: number): Promise<Beginning> {
    if (text.length <= LONG_CHARS) return beginningOf(this.mask(text), charsMax);
    const pace = this.#paceOf();
    const stream = this.stream();
    const masked = new LongText();
    for (let at = 0; at < text.length && masked.length <= charsMax; at += LONG_CHARS) {
      await pace();
      masked.append(stream.push(text.slice(at, at + LONG_CHARS)));
    }
    if (masked.length <= charsMax) masked.append(stream.end());
    return beginningOf(masked.text, charsMax);
  }

  /** Starts to mask a text that arrives in pieces. `work` counts the examined characters. */
  stream(work: Work = { steps: 0 }): MaskStream {
    return new MaskStream(() => this.#values(), work);
  }

  /**
   * Returns at most `charsMax` characters of the masked text. Reads only the start of a long text. If masks
   * are shorter than the values, it reads twice as much, at most `WINDOWS_MAX` times.
   */
  beginning(text: string, charsMax: number, work: Work = { steps: 0 }): Beginning {
    let read = charsMax + Math.max(MARGIN_CHARS, this.#values().longest);
    for (let windows = 1; ; windows += 1) {
      if (text.length <= read) {
        return beginningOf(this.mask(text, work), charsMax);
      }
      const masked = maskShapes(this.#values().mask(text.slice(0, read), work, true), work, true);
      const maskAt = masked.lastIndexOf(MASK);
      const tail = maskAt < 0 ? masked.length : masked.length - maskAt - MASK.length;
      // The end may be the start of a credential that is still too short to be recognised.
      const known = masked.slice(0, masked.length - Math.min(tail, MARGIN_CHARS));
      if (known.length >= charsMax || windows === WINDOWS_MAX) {
        return { text: head(known, charsMax), whole: false };
      }
      read *= 2;
    }
  }

  /** Returns at most `charsMax` characters of the masked text. An ellipsis replaces the rest. */
  cut(text: string, charsMax: number): string {
    const { text: shown, whole } = this.beginning(text, charsMax);
    return whole ? shown : `${head(shown, charsMax - 1)}…`;
  }

  line(text: string, charsMax: number): string {
    const { text: shown, whole } = this.beginning(text, charsMax * BLANKS_MAX);
    const flat = shown.replaceAll(/\s+/g, " ").trim();
    return whole && flat.length <= charsMax ? flat : `${head(flat, charsMax - 1).trimEnd()}…`;
  }

  /** Masks all strings in a value, whatever the names of its fields. */
  all<T>(value: T): T {
    if (typeof value === "string") return this.mask(value) as T;
    if (Array.isArray(value)) return value.map((one) => this.all(one)) as T;
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, this.all(inner)])) as T;
  }

  /**
   * Masks all strings in a JSON value. The value of a field with a secret name is always masked. If `hide` is
   * given, it replaces each other string instead.
   */
  json(value: unknown, hide: Hide = (text) => this.mask(text)): unknown {
    return redactJson(value, "", { hide, depth: 0 });
  }

  /**
   * Prepares a message for output: masks credentials, and removes image data and signatures of providers. If
   * `hide` is given, it replaces each text instead.
   */
  message(message: Message, hide: Hide = (text) => this.mask(text)): Message {
    const content = message.content.map((block) => redactBlock(block, hide));
    const more: Record<string, unknown> = {};
    if (message.role === "assistant" && message.errorMessage !== undefined) {
      more.errorMessage = hide(message.errorMessage);
    }
    if (message.role === "user" && message.senderName !== undefined) {
      more.senderName = hide(message.senderName);
    }
    if (message.role === "toolResult" && message.details !== undefined) {
      more.details = redactJson(message.details, "", { hide, depth: 0 });
    }
    return { ...message, content, ...more } as Message;
  }

  #values(): KnownValues {
    this.#known ??= new KnownValues(this.#forms);
    return this.#known;
  }
}

function beginningOf(masked: string, charsMax: number): Beginning {
  if (masked.length <= charsMax) return { text: masked, whole: true };
  return { text: head(masked, charsMax), whole: false };
}

const DEPTH_MAX = 64;

function redactJson(value: unknown, field: string, at: { hide: Hide; depth: number }): unknown {
  const { hide, depth } = at;
  if (typeof value === "string") {
    return isSecretName(field) && value !== "" ? maskOf(value) : hide(value);
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth >= DEPTH_MAX) return MASK;
  if (Array.isArray(value)) return value.map((item) => redactJson(item, field, { hide, depth: depth + 1 }));
  const isImage = "type" in value && value.type === "image";
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) =>
      isImage && name === "data" ? [name, ""] : [name, redactJson(item, name, { hide, depth: depth + 1 })],
    ),
  );
}

type Block = Message["content"][number];

function redactBlock(block: Block, hide: Hide): Block {
  switch (block.type) {
    case "text":
      return { type: "text", text: hide(block.text) };
    case "thinking":
      return {
        type: "thinking",
        thinking: hide(block.thinking),
        ...optional({ redacted: block.redacted }),
      };
    case "image":
      return {
        type: "image",
        data: "",
        mimeType: block.mimeType,
        bytes: block.bytes ?? Math.floor((block.data.replace(/={1,2}$/, "").length * 3) / 4),
      };
    case "toolCall":
      return {
        type: "toolCall",
        id: block.id,
        name: block.name,
        arguments: redactJson(block.arguments, "", { hide, depth: 0 }) as Record<string, unknown>,
      };
  }
}
