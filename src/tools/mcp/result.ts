// Converts the answer of an MCP tool to a tool result. Text, pictures and structured content are included;
// other content is only named. Text that is too long is cut, with a note. Pictures are checked, and limited
// in number and size. Secrets that the configuration gave the server are redacted from its answers (I14).

import { isObject } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import { imageTypeOf } from "../../core/shapes/picture.ts";
import { firstBytes } from "../../core/text/inbound-text.ts";
import { IMAGE_MAX_BYTES } from "../files/file-operations.ts";
import { type Mask, plainLine } from "./plain-text.ts";

/** Maximum number of blocks that are read from one answer. */
const BLOCKS_MAX = 1_000;
const IMAGES_MAX = 4;
/** Maximum number of blocks that are named because they can't be shown. */
const NAMED_MAX = 20;
const NAME_MAX_CHARS = 200;

interface Gathered {
  readonly texts: string[];
  readonly images: ImageBlock[];
  readonly notShown: string[];
}

const short = (value: unknown): string => plainLine(String(value ?? "?"), NAME_MAX_CHARS);

/** Base64 text is a third longer than the bytes that it encodes. */
const bytesOf = (data: unknown): number => (typeof data === "string" ? Math.floor((data.length * 3) / 4) : 0);

function addImage(into: Gathered, data: unknown, named: string): void {
  const bytes = bytesOf(data);
  const leave = (why: string) => into.notShown.push(`${named} of ${bytes} bytes: ${why}`);
  if (typeof data !== "string") return void into.notShown.push(`${named}: no data`);
  if (bytes > IMAGE_MAX_BYTES) return void leave(`more than ${IMAGE_MAX_BYTES}`);
  if (into.images.length >= IMAGES_MAX) return void leave(`more than ${IMAGES_MAX} pictures`);
  const decoded = Buffer.from(data, "base64");
  // Check the picture: providers refuse a whole conversation that contains a broken one.
  const mimeType = imageTypeOf(decoded.subarray(0, 12));
  if (mimeType === undefined) return void leave("no PNG, JPEG, GIF or WebP");
  into.images.push({ type: "image", data: decoded.toString("base64"), mimeType });
}

function addResource(into: Gathered, resource: unknown): void {
  if (!isObject(resource)) return void into.notShown.push("a resource without contents");
  const { uri, mimeType, text, blob } = resource;
  const named = `resource ${short(uri)} (${short(mimeType)})`;
  if (typeof text === "string") into.texts.push(`[${named}]\n${text}`);
  else if (String(mimeType).startsWith("image/")) addImage(into, blob, named);
  else into.notShown.push(`${named} of ${bytesOf(blob)} bytes`);
}

function addBlock(into: Gathered, block: unknown): void {
  const { type, text, data, mimeType, resource, uri, name, description } = isObject(block) ? block : {};
  switch (type) {
    case "text":
      into.texts.push(String(text ?? ""));
      return;
    case "image":
      addImage(into, data, `image (${short(mimeType)})`);
      return;
    case "resource":
      addResource(into, resource);
      return;
    case "resource_link": {
      const what = [name, description].filter((word) => typeof word === "string" && word !== "").map(short);
      into.texts.push(`[link to resource ${short(uri)}] ${what.join(": ")}`.trim());
      return;
    }
    case "audio":
      into.notShown.push(`audio (${short(mimeType)}) of ${bytesOf(data)} bytes`);
      return;
    default:
      into.notShown.push(`content of the type ${short(type)}`);
  }
}

/** Returns whether a text repeats the structured content, as servers do for older clients. */
function isSame(text: string, json: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === json;
  } catch {
    return false;
  }
}

/** The answer of an MCP tool, as far as it can be shown. */
export type OutsideResult = {
  readonly status: "ok";
  readonly text?: string;
  readonly structured?: unknown;
  /** A note about the part of the text that was cut. */
  readonly truncated?: string;
  readonly notShown?: readonly string[];
  readonly images?: readonly ImageBlock[];
};

/** Returns the result for the model. `answer`: the result of `tools/call`, not yet checked. */
export function resultOf(
  answer: Readonly<Record<string, unknown>>,
  bytesMax: number,
  mask: Mask,
): Result<OutsideResult> {
  const { content, isError } = answer;
  const structured = jsonOf(answer.structuredContent, mask);
  const blocks = Array.isArray(content) ? content : [];
  const into: Gathered = { texts: [], images: [], notShown: [] };
  for (const block of blocks.slice(0, BLOCKS_MAX)) addBlock(into, block);
  if (blocks.length > BLOCKS_MAX) into.notShown.push(`${blocks.length - BLOCKS_MAX} more parts`);
  const whole = mask(into.texts.join("\n"));
  if (structured === undefined) into.notShown.push("structured content that is nested too deeply");
  const json = structured ?? "";
  // Included completely or not at all: a part of an object is useless.
  const fits = json !== "" && Buffer.byteLength(json) <= bytesMax;
  const isTold = fits && (whole === "" || isSame(whole, json));
  const text = isTold ? "" : firstBytes(whole || json, bytesMax);
  const wholeBytes = Buffer.byteLength(whole || json);
  const cut = text !== "" && Buffer.byteLength(text) < wholeBytes;
  const more = {
    ...(fits ? { structured: JSON.parse(json) as unknown } : {}),
    ...(cut ? { truncated: `the first ${Buffer.byteLength(text)} of ${wholeBytes} bytes` } : {}),
    ...(into.notShown.length === 0 ? {} : { notShown: namedFew(into.notShown) }),
    ...(into.images.length === 0 ? {} : { images: into.images }),
  };
  if (isError !== true) return ok({ status: "ok", ...(text === "" && fits ? {} : { text }), ...more });
  return fail("mcp_failed", text || "the tool failed and did not say why", { details: more });
}

/** Returns a value as redacted JSON, "" for no value, or undefined if it is nested too deeply. */
function jsonOf(value: unknown, mask: Mask): string | undefined {
  if (value === undefined) return "";
  try {
    return mask(JSON.stringify(value));
  } catch {
    return undefined;
  }
}

function namedFew(named: readonly string[]): string[] {
  const left = named.length - NAMED_MAX;
  return left <= 0 ? [...named] : [...named.slice(0, NAMED_MAX), `and ${left} more`];
}
