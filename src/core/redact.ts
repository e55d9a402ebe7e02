// Owns what is masked when a transcript or a log line leaves the gateway (I14). What is stored stays whole.
// RD1: masking twice is masking once.
// RD2: only what looks like a credential, and what is known to be one, is touched: ordinary prose passes
//      unchanged.
// RD3: the work is linear in the text: see KV1 of src/core/redact-known.ts, SH1 of src/core/redact-shapes.ts.
// RD4: there is no masking without a `Redactor`, and whoever makes one says which values it knows.
// RD5: `beginning` cuts before it masks, and leaves no beginning of a secret at the cut.
// RD6: `whole` and `start` give what `mask` gives; of a long text they mask one piece after the other, and
//      let other work go on in between.

import type { Message } from "./message.ts";
import type { Pace, PaceOf } from "./pace.ts";
import { KnownValues } from "./redact-known.ts";
import { isSecretName, MASK, maskShapes, type Work } from "./redact-shapes.ts";
import { MaskStream } from "./redact-stream.ts";
import { grown } from "./text-delta.ts";

/** A shorter one is a word like any other: to mask it would make the text unreadable. */
const KNOWN_CHARS_MIN = 6;
/** Behind a cut so much more is looked at: nearly every credential is known for one within it. */
const MARGIN_CHARS = 1_024;
/** A text that is masked in pieces of this length. */
export const LONG_CHARS = 64 * 1024;
/** Each window is twice as long as the one before. */
const WINDOWS_MAX = 4;

export type { MaskStream };

/** The masked beginning of a text. */
export interface Beginning {
  readonly text: string;
  /** Nothing is left out. */
  readonly whole: boolean;
}

type Hide = (text: string) => string;

/**
 * Masks what looks like a credential, and these values wherever they stand, whatever they look like: as they
 * are, in a string of JSON, in an address.
 */
export class Redactor {
  readonly #forms = new Set<string>();
  /** Made again by the first text after something was learned. */
  #known: KnownValues | undefined;
  #paceOf: PaceOf = () => () => undefined;

  constructor(secrets: Iterable<string>) {
    this.learn(secrets);
  }

  learn(secrets: Iterable<string>): void {
    const before = this.#forms.size;
    for (const secret of secrets) {
      if (secret.length < KNOWN_CHARS_MIN) continue;
      const asJson = JSON.stringify(secret).slice(1, -1);
      const asText = secret.toWellFormed();
      for (const form of [secret, asJson, encodeURIComponent(asText)]) this.#forms.add(form);
    }
    if (this.#forms.size > before) this.#known = undefined;
  }

  /** From now on long texts are masked at such a pace. */
  pacedBy(paceOf: PaceOf): void {
    this.#paceOf = paceOf;
  }

  /** For work on many texts, which begins now. */
  pace(): Pace {
    return this.#paceOf("with this step");
  }

  /** `work` is told how much was done. */
  mask(text: string, work: Work = { steps: 0 }): string {
    return maskShapes(this.#values().mask(text, work, false), work, false);
  }

  /** The same text that `mask` gives, without a long step. */
  async whole(text: string): Promise<string> {
    return (await this.start(text, Number.POSITIVE_INFINITY)).text;
  }

  /** At most so many characters of what `mask` gives, without a long step. */
  async start(text: string, charsMax: number): Promise<Beginning> {
    if (text.length <= LONG_CHARS) return beginningOf(this.mask(text), charsMax);
    const pace = this.#paceOf();
    const stream = this.stream();
    let masked = "";
    for (let at = 0; at < text.length && masked.length <= charsMax; at += LONG_CHARS) {
      await pace();
      masked = grown(masked, stream.push(text.slice(at, at + LONG_CHARS)));
    }
    if (masked.length <= charsMax) masked = grown(masked, stream.end());
    return beginningOf(masked, charsMax);
  }

  /** Masks a text that comes in pieces. `work` is told how much was done. */
  stream(work: Work = { steps: 0 }): MaskStream {
    return new MaskStream(() => this.#values(), work);
  }

  /**
   * At most so many characters of the masked text. Of a long text only the beginning is read, and more of it
   * where masks are shorter than what they cover, up to `WINDOWS_MAX` times.
   */
  beginning(text: string, charsMax: number, work: Work = { steps: 0 }): Beginning {
    let read = charsMax + Math.max(MARGIN_CHARS, this.#values().longest);
    for (let windows = 1; ; windows += 1) {
      if (text.length <= read) {
        return beginningOf(this.mask(text, work), charsMax);
      }
      const known = this.#window(text.slice(0, read), work);
      if (known.length >= charsMax || windows === WINDOWS_MAX) {
        return { text: known.slice(0, charsMax).toWellFormed(), whole: false };
      }
      read *= 2;
    }
  }

  /** The masked text of a window that the text goes on behind, as far as it is known. */
  #window(text: string, work: Work): string {
    const masked = maskShapes(this.#values().mask(text, work, true), work, true);
    const maskAt = masked.lastIndexOf(MASK);
    const tail = maskAt < 0 ? masked.length : masked.length - maskAt - MASK.length;
    // Behind the last mask a credential may begin that is too short to be known for one.
    return masked.slice(0, masked.length - Math.min(tail, MARGIN_CHARS));
  }

  /** JSON with its strings masked; the value of a field named like a secret is masked whatever it is. */
  json(value: unknown): unknown {
    return redactJson(value, "", { hide: (text) => this.mask(text), depth: 0 });
  }

  /**
   * A message on its way out: credentials masked, image data and providers' signatures left out. `hide`: what
   * becomes of each text. Default: it is masked.
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
  return { text: masked.slice(0, charsMax).toWellFormed(), whole: false };
}

const DEPTH_MAX = 64;

function redactJson(value: unknown, field: string, at: { hide: Hide; depth: number }): unknown {
  const { hide, depth } = at;
  if (typeof value === "string") {
    return isSecretName(field) && value !== "" ? MASK : hide(value);
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
        arguments: redactJson(block.arguments, "", { hide, depth: 0 }) as Record<string, unknown>,
      };
  }
}
