// Parses the messages and input items of an OpenAI request into turns.
// Unsupported content is refused with its position; nothing is skipped silently.

import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import { readImage } from "../../gateway/methods/attachments.ts";

/** One message, from either API. */
export interface Turn {
  readonly role: "system" | "user" | "assistant";
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly name?: string;
}

/** A message with a known role, whose content is not parsed yet. */
export interface Item {
  readonly role: Turn["role"];
  readonly where: string;
  readonly content: unknown;
  readonly name?: string;
}

/** Maximum number of pictures in one request. */
const IMAGES_MAX = 16;
const NAME_CHARS_MAX = 64;

function refuse(where: string, why: string): ReturnType<typeof fail> {
  return fail("invalid_argument", `${where}: ${why}`, { details: { param: where } });
}

const ROLES: Readonly<Record<string, Turn["role"]>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
};

/** Shows a wrong value in an error. An object may be nested deeply, so it is not serialised. */
function showValue(value: unknown): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  return (JSON.stringify(value) ?? "nothing").slice(0, 60);
}

function roleOf(value: unknown, where: string): Result<Turn["role"]> {
  const role = typeof value === "string" && Object.hasOwn(ROLES, value) ? ROLES[value] : undefined;
  if (role !== undefined) return ok(role);
  if (value === "tool" || value === "function") {
    return refuse(where, "results of a client's tools are not supported: an agent calls only its own tools");
  }
  return refuse(`${where}.role`, `must be system, developer, user or assistant, got ${showValue(value)}`);
}

/** Returns the messages of a chat completion. Their contents are not parsed yet. */
export function chatItems(messages: unknown): Result<Item[]> {
  if (!Array.isArray(messages) || messages.length === 0) {
    return refuse("messages", "must be a list with at least one message");
  }
  const items: Item[] = [];
  for (const [index, message] of messages.entries()) {
    const where = `messages[${index}]`;
    if (!isObject(message)) return refuse(where, "must be an object with role and content");
    const role = roleOf(message.role, where);
    if (!role.ok) return role;
    const { tool_calls: calls, function_call: call } = message;
    if (call != null || (Array.isArray(calls) && calls.length > 0)) {
      return refuse(where, "calls of a client's tools are not supported: an agent calls only its own tools");
    }
    const name = nameOf(message.name, `${where}.name`);
    if (!name.ok) return name;
    items.push({ role: role.value, where: `${where}.content`, content: message.content, ...name.value });
  }
  return ok(items);
}

function nameOf(value: unknown, where: string): Result<{ name?: string }> {
  if (value == null) return ok({});
  const fits = typeof value === "string" && value !== "" && value.length <= NAME_CHARS_MAX;
  return fits ? ok({ name: value }) : refuse(where, `must be a string of 1 to ${NAME_CHARS_MAX} characters`);
}

/** Returns the input items of a response, without a model's reasoning. Their contents are not parsed yet. */
export function inputItems(input: unknown): Result<Item[]> {
  if (typeof input === "string") return ok([{ role: "user", where: "input", content: input }]);
  if (!Array.isArray(input) || input.length === 0) {
    return refuse("input", "must be a string, or a list with at least one item");
  }
  const items: Item[] = [];
  for (const [index, item] of input.entries()) {
    const where = `input[${index}]`;
    if (!isObject(item)) return refuse(where, "must be an object");
    if (item.type === "reasoning") continue;
    if (item.type !== undefined && item.type !== "message") {
      return refuse(where, `items of type ${showValue(item.type)} are not supported; only message is`);
    }
    const role = roleOf(item.role, where);
    if (!role.ok) return role;
    items.push({ role: role.value, where: `${where}.content`, content: item.content });
  }
  return ok(items);
}

/** Reads one part of a content: a text or a picture. */
function partOf(part: unknown, role: Turn["role"], where: string): Result<string | ImageBlock> {
  if (!isObject(part)) return refuse(where, "must be an object with a type");
  const { type } = part;
  if (type === "text" || type === "input_text" || type === "output_text") {
    return typeof part.text === "string" ? ok(part.text) : refuse(`${where}.text`, "must be a string");
  }
  if (type === "refusal") {
    return typeof part.refusal === "string"
      ? ok(part.refusal)
      : refuse(`${where}.refusal`, "must be a string");
  }
  if (type === "image_url" || type === "input_image") {
    if (role !== "user") return refuse(where, "only a user's message may contain images");
    const url = isObject(part.image_url) ? part.image_url.url : part.image_url;
    if (typeof url !== "string" || !url.startsWith("data:")) {
      return refuse(where, "an image must be a data URL (data:image/png;base64,…); links are not fetched");
    }
    const image = readImage(url, undefined, where);
    return image.ok ? image : { ...image, details: { param: where } };
  }
  return refuse(where, `parts of type ${showValue(type)} are not supported; there are: text and images`);
}

/** Reads one whole message. */
function readItem(item: Item): Result<Turn> {
  const { role, where, content, name } = item;
  const named = optional({ name });
  if (content == null && role === "assistant") return ok({ role, text: "", images: [], ...named });
  if (typeof content === "string") return ok({ role, text: content, images: [], ...named });
  if (!Array.isArray(content)) return refuse(where, "must be a string or a list of parts");
  const texts: string[] = [];
  const images: ImageBlock[] = [];
  for (const [index, part] of content.entries()) {
    const read = partOf(part, role, `${where}[${index}]`);
    if (!read.ok) return read;
    if (typeof read.value === "string") texts.push(read.value);
    else images.push(read.value);
  }
  return ok({ role, text: texts.join("\n"), images, ...named });
}

/** Reads messages in their order; fails if they have too many pictures together. */
export function readItems(items: readonly Item[]): Result<Turn[]> {
  const turns: Turn[] = [];
  let images = 0;
  for (const item of items) {
    const read = readItem(item);
    if (!read.ok) return read;
    images += read.value.images.length;
    if (images > IMAGES_MAX) return refuse(item.where, `a request may contain at most ${IMAGES_MAX} images`);
    turns.push(read.value);
  }
  return ok(turns);
}
