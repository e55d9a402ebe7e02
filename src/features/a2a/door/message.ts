// Reads the message of an A2A client: its texts and pictures become the input of a run.
// AM1: a part that cannot be used is refused by its position; nothing is skipped silently.

import type { Message, Part } from "@a2a-js/sdk";
import { Role } from "@a2a-js/sdk";
import { ContentTypeNotSupportedError, RequestMalformedError } from "@a2a-js/sdk/errors";
import { optional } from "../../../core/optional.ts";
import type { ImageBlock } from "../../../core/shapes/message.ts";
import { cut } from "../../../core/text/cut.ts";
import { readImage } from "../../../gateway/methods/attachments.ts";
import { BUDGET_FIELD, CHAIN_FIELD, HOP_FIELD, LABELS_FIELD, SENDER_FIELD, WAIT_FIELD } from "../fields.ts";

/** Maximum number of pictures in one message. */
const IMAGES_MAX = 16;
/** Maximum number of sends. Higher numbers are mistakes. */
const HOP_MAX = 10_000;
/** Longest wait of a peer's run that counts. */
const WAIT_MAX_MS = 86_400_000;
/** Maximum characters of a `contextId` that a client chooses. */
const CONTEXT_CHARS_MAX = 128;
const CONTEXT_ID = /^[\w.~-]+$/;
/** Media types of files that are read as texts. */
const TEXT_TYPE = /^(?:text\/|application\/(?:json|xml|yaml)\b)/;

export interface MessageContent {
  readonly messageId: string;
  /** Absent: the message begins a new conversation. */
  readonly contextId?: string;
  /** The task that the message refers to. */
  readonly taskId?: string;
  readonly text: string;
  readonly images: readonly ImageBlock[];
  /** Number of sends that led to this message, with this one. Absent: its sender counts none. */
  readonly hop?: number;
  /** Key of the session of a peer that sends the message. Its gateway has the name of the peer. */
  readonly from?: string;
  /** The chain of a peer's message. */
  readonly chainId?: string;
  /** Tokens that the chain may still use, as the sender says. */
  readonly tokensLeft?: number;
  /** The labels of a peer's message, as it wrote them. */
  readonly labels?: unknown;
  /** Time for which the run that sent a peer's message still waits for the answer. */
  readonly waitMs?: number;
}

/** Returns the id that makes a client's message one run, however often it is sent (I4). */
export function callIdOf(askedBy: string, agentId: string, messageId: string): string {
  return `${askedBy}:${agentId}:${messageId}`;
}

function makeMalformed(text: string): Error {
  return new RequestMalformedError(text);
}

/** Returns a file's text with its name above it. */
function fileText(part: Part, where: string): string {
  const bytes = part.content?.$case === "raw" ? part.content.value : new Uint8Array();
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw makeMalformed(`${where}.raw must be UTF-8 for the media type ${part.mediaType}`);
  }
  return part.filename === "" ? text : `${cut(part.filename, 200)}:\n${text}`;
}

function partOf(part: Part, where: string): string | ImageBlock {
  const { content, mediaType } = part;
  switch (content?.$case) {
    case "text":
      return content.value;
    case "data":
      return JSON.stringify(content.value);
    case "raw": {
      if (TEXT_TYPE.test(mediaType)) return fileText(part, where);
      if (!mediaType.startsWith("image/")) {
        const shown = JSON.stringify(cut(mediaType, 60));
        throw new ContentTypeNotSupportedError(`${where}: files of type ${shown} are not supported`);
      }
      const image = readImage(Buffer.from(content.value).toString("base64"), mediaType, where);
      if (image.ok) return image.value;
      throw new ContentTypeNotSupportedError(image.error);
    }
    case "url":
      // Only told to the agent: the gateway fetches no address that a client names.
      return `${cut(part.filename, 200) || "file"}: ${content.value}`;
    default:
      throw makeMalformed(`${where} must have text, raw, url or data`);
  }
}

function contextIdOf({ contextId }: Message): string | undefined {
  if (contextId === "") return undefined;
  if (contextId.length <= CONTEXT_CHARS_MAX && CONTEXT_ID.test(contextId)) return contextId;
  throw makeMalformed(`message.contextId must be 1 to ${CONTEXT_CHARS_MAX} letters, digits, ., _, ~ and -`);
}

function numberOf({ metadata }: Message, field: string, max: number): number | undefined {
  const given: unknown = metadata?.[field];
  if (given === undefined) return undefined;
  if (typeof given === "number" && Number.isInteger(given) && given >= 0 && given <= max) return given;
  throw makeMalformed(`message.metadata["${field}"] must be a whole number of 0 to ${max}`);
}

/** Returns a text of the metadata, which only peers send. */
function factOf({ metadata }: Message, field: string): string | undefined {
  const fact: unknown = metadata?.[field];
  if (fact === undefined) return undefined;
  if (typeof fact === "string" && /^[!-~]{1,512}$/.test(fact)) return fact;
  throw makeMalformed(`message.metadata["${field}"] must be 1 to 512 visible ASCII characters`);
}

/** Reads a message. Throws an A2A error that names the wrong field. */
export function readMessage(message: Message | undefined): MessageContent {
  if (message === undefined) throw makeMalformed("message is missing");
  const { messageId, taskId, role, parts } = message;
  if (!/^[!-~]{1,128}$/.test(messageId))
    throw makeMalformed("message.messageId must be 1 to 128 visible ASCII characters");
  if (role !== Role.ROLE_USER) throw makeMalformed('message.role must be "ROLE_USER"');
  if (parts.length === 0) throw makeMalformed("message.parts must have at least one part");
  const read = parts.map((part, index) => partOf(part, `message.parts[${index}]`));
  const texts = read.filter((one) => typeof one === "string");
  const images = read.filter((one) => typeof one !== "string");
  if (images.length > IMAGES_MAX) throw makeMalformed(`a message may have at most ${IMAGES_MAX} pictures`);
  const text = texts.join("\n\n");
  if (text.trim() === "" && images.length === 0) throw makeMalformed("the message has no text");
  const contextId = contextIdOf(message);
  const hop = numberOf(message, HOP_FIELD, HOP_MAX);
  const waitMs = numberOf(message, WAIT_FIELD, WAIT_MAX_MS);
  return {
    messageId,
    text,
    images,
    ...(contextId === undefined ? {} : { contextId }),
    ...(taskId === "" ? {} : { taskId }),
    ...(hop === undefined ? {} : { hop: hop + 1 }),
    ...optional({ tokensLeft: numberOf(message, BUDGET_FIELD, Number.MAX_SAFE_INTEGER) }),
    ...optional({ labels: message.metadata?.[LABELS_FIELD] as unknown }),
    ...optional({ waitMs, from: factOf(message, SENDER_FIELD), chainId: factOf(message, CHAIN_FIELD) }),
  };
}
