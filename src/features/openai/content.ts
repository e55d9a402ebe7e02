// Parses the messages and input items of an OpenAI request into turns.
// Unsupported content is refused with its position; nothing is skipped silently.

import { isObject, jsonOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import { readImage } from "../../gateway/methods/attachments.ts";

/** A call of a client's tool, as the client repeats it. */
export interface RepeatedCall {
  /** The id that the client knows. */
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

interface Head {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly where: string;
  readonly name?: string;
  /** Calls of an assistant's message. */
  readonly calls?: readonly RepeatedCall[];
  /** Id of the call that a message of the role `tool` answers. */
  readonly callId?: string;
  /** Id of an item of an earlier response, which stands for its content. */
  readonly reference?: string;
}

/** One message, from either API. */
export interface Turn extends Head {
  readonly text: string;
  readonly images: readonly ImageBlock[];
}

/** A message with a known role, whose content is not parsed yet. */
export interface Item extends Head {
  readonly content: unknown;
}

/** Maximum number of pictures in one request. */
const IMAGES_MAX = 16;
const NAME_CHARS_MAX = 64;
const CALL_ID_CHARS_MAX = 200;
/** Maximum number of calls in one answer, and of results after it. */
export const CALLS_MAX = 128;
/** Maximum bytes of a body: it may include pictures. */
export const BODY_MAX_BYTES = 25 * 1024 * 1024;
const ARGUMENTS_CHARS_MAX = 1024 * 1024;
const ARGUMENTS_DEPTH_MAX = 100;

function refuse(where: string, why: string): ReturnType<typeof fail> {
  return fail("invalid_argument", `${where}: ${why}`, { details: { param: where } });
}

const ROLES: Readonly<Record<string, Turn["role"]>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
};

/** Shows a wrong value in an error. An object may be nested deeply, so it is not serialised. */
function showValue(value: unknown): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  return (JSON.stringify(value) ?? "nothing").slice(0, 60);
}

function roleOf(value: unknown, where: string): Result<Turn["role"]> {
  const role = typeof value === "string" && Object.hasOwn(ROLES, value) ? ROLES[value] : undefined;
  if (role !== undefined) return ok(role);
  return refuse(
    `${where}.role`,
    `must be system, developer, user, assistant or tool, got ${showValue(value)}`,
  );
}

function idIn(value: unknown, where: string): Result<string> {
  return typeof value === "string" && value !== "" && value.length <= CALL_ID_CHARS_MAX
    ? ok(value)
    : refuse(where, `must be a string of 1 to ${CALL_ID_CHARS_MAX} characters`);
}

/** Reads a call. `where` is that of the fields `name` and `arguments`. */
function callOf(id: unknown, fields: unknown, where: string, idWhere: string): Result<RepeatedCall> {
  const callId = idIn(id, idWhere);
  if (!callId.ok) return callId;
  if (!isObject(fields)) return refuse(where, "must be an object with name and arguments");
  const name = idIn(fields.name, `${where}.name`);
  if (!name.ok) return name;
  const text = fields.arguments === "" ? "{}" : fields.arguments;
  const given = typeof text === "string" && text.length <= ARGUMENTS_CHARS_MAX ? jsonOf(text) : undefined;
  if (!isObject(given) || !isBounded(given, { depth: ARGUMENTS_DEPTH_MAX, values: ARGUMENTS_CHARS_MAX }))
    return refuse(`${where}.arguments`, "must be a string with one JSON object");
  return ok({ id: callId.value, name: name.value, arguments: given });
}

/** Reads the calls of an assistant's message in a chat completion. */
function callsIn(value: unknown, where: string): Result<{ calls?: RepeatedCall[] }> {
  if (value == null) return ok({});
  if (!Array.isArray(value) || value.length > CALLS_MAX)
    return refuse(where, `must be a list of at most ${CALLS_MAX} calls`);
  const calls: RepeatedCall[] = [];
  for (const [index, call] of value.entries()) {
    const at = `${where}[${index}]`;
    if (!isObject(call) || (call.type ?? "function") !== "function")
      return refuse(at, "must be a call of type function");
    const read = callOf(call.id, call.function, `${at}.function`, `${at}.id`);
    if (!read.ok) return read;
    calls.push(read.value);
  }
  return ok(calls.length === 0 ? {} : { calls });
}

/** Returns whether a value has few enough levels and values. It must not recurse. */
export function isBounded(value: unknown, { depth, values }: { depth: number; values: number }): boolean {
  const rest = [{ value, level: 1 }];
  for (let count = 1; ; count++) {
    const next = rest.pop();
    if (next === undefined) return true;
    if (count > values || next.level > depth) return false;
    if (typeof next.value !== "object" || next.value === null) continue;
    for (const inner of Object.values(next.value)) rest.push({ value: inner, level: next.level + 1 });
  }
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
    if (message.function_call != null) return refuse(where, "function_call is not supported; tool_calls is");
    const base = { role: role.value, where: `${where}.content`, content: message.content };
    if (role.value === "tool") {
      const callId = idIn(message.tool_call_id, `${where}.tool_call_id`);
      if (!callId.ok) return callId;
      items.push({ ...base, callId: callId.value });
      continue;
    }
    const calls = role.value === "assistant" ? callsIn(message.tool_calls, `${where}.tool_calls`) : ok({});
    if (!calls.ok) return calls;
    const name = nameOf(message.name, `${where}.name`);
    if (!name.ok) return name;
    items.push({ ...base, ...name.value, ...calls.value });
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
  return listedItems(input, "input");
}

/** Returns whether a message says anything: an empty one is no message. */
export function saysAnything({ role, text, images, calls, reference }: Turn): boolean {
  return role === "tool" || text.trim() !== "" || images.length > 0 || (calls ?? reference) !== undefined;
}

/** Like `inputItems`, for the list in a field. */
export function listedItems(input: readonly unknown[], field: string): Result<Item[]> {
  const items: Item[] = [];
  for (const [index, item] of input.entries()) {
    const where = `${field}[${index}]`;
    if (!isObject(item)) return refuse(where, "must be an object");
    // The agent's own thoughts and pictures come back only for the client's use.
    if (item.type === "reasoning" || item.type === "image_generation_call") continue;
    const read = inputItem(item, where);
    if (!read.ok) return read;
    items.push(read.value);
  }
  return ok(items);
}

function inputItem(item: Readonly<Record<string, unknown>>, where: string): Result<Item> {
  switch (item.type) {
    case undefined:
    case "message": {
      const role = roleOf(item.role, where);
      if (role.ok && role.value === "tool")
        return refuse(`${where}.role`, "a result is a function_call_output");
      return role.ok ? ok({ role: role.value, where: `${where}.content`, content: item.content }) : role;
    }
    case "function_call": {
      const call = callOf(item.call_id, item, where, `${where}.call_id`);
      return call.ok ? ok({ role: "assistant", where, content: null, calls: [call.value] }) : call;
    }
    case "function_call_output": {
      const callId = idIn(item.call_id, `${where}.call_id`);
      if (!callId.ok) return callId;
      return ok({ role: "tool", where: `${where}.output`, content: item.output, callId: callId.value });
    }
    case "item_reference": {
      const id = idIn(item.id, `${where}.id`);
      return id.ok ? ok({ role: "assistant", where, content: null, reference: id.value }) : id;
    }
  }
  const known = "message, function_call, function_call_output and item_reference";
  return refuse(where, `items of type ${showValue(item.type)} are not supported; there are: ${known}`);
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
    if (role !== "user" && role !== "tool")
      return refuse(where, "only a user's message or a result may contain images");
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
  const { content, ...head } = item;
  const { role, where } = head;
  if (content == null && role === "assistant") return ok({ ...head, text: "", images: [] });
  if (typeof content === "string") return ok({ ...head, text: content, images: [] });
  if (!Array.isArray(content)) return refuse(where, "must be a string or a list of parts");
  const texts: string[] = [];
  const images: ImageBlock[] = [];
  for (const [index, part] of content.entries()) {
    const read = partOf(part, role, `${where}[${index}]`);
    if (!read.ok) return read;
    if (typeof read.value === "string") texts.push(read.value);
    else images.push(read.value);
  }
  return ok({ ...head, text: texts.join("\n"), images });
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
