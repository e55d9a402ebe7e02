// Sends texts, files and typing indicators, and checks an account.
// WS1: a text counts as sent if the platform accepted it and returned an id. If it does not reach the person,
//      a webhook reports this later.

import type { OutgoingFile } from "../../channels/channel.ts";
import { type Fields, fieldsOf, jsonOf, listOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { World } from "../../world.ts";
import { textOf } from "./fields.ts";
import { askGraph, type GraphRequest } from "./graph.ts";
import { type GraphProblem, problemOf } from "./problems.ts";
import type { Recipient } from "./recipient.ts";
import type { WhatsAppAccount } from "./whatsapp.ts";

const TIMEOUT_MS = 20_000;
const UPLOAD_MS = 120_000;
/** The pictures that WhatsApp shows as such. Others are sent as documents. */
const IMAGE_TYPES = ["image/jpeg", "image/png"];
const IMAGE_MAX_BYTES = 5 * 1024 * 1024;
const ANSWER_BYTES_MAX = 64 * 1024;
const NAME_CHARS_MAX = 100;

const BOUNDS = { purpose: "channel", bytesMax: ANSWER_BYTES_MAX, timeoutMs: TIMEOUT_MS } as const;

/** Makes a request about the number of the account. Returns the fields of the answer, or the problem. */
async function ask(
  { graphUrl, phoneNumberId, accessToken: token }: WhatsAppAccount,
  path: string,
  request: Partial<GraphRequest>,
  world: World,
): Promise<{ readonly fields: Fields } | GraphProblem> {
  const url = new URL(`${graphUrl}/${encodeURIComponent(phoneNumberId)}${path}`);
  const answer = await askGraph({ url, configured: graphUrl, token, ...BOUNDS, ...request }, world);
  const problem = problemOf(answer, token);
  return problem ?? { fields: answer.kind === "answered" ? fieldsOf(jsonOf(answer.body)) : {} };
}

/** Sends a text. Returns the id that the platform gave it, or the problem. */
export function sendText(
  account: WhatsAppAccount,
  recipient: Recipient,
  body: string,
  world: World,
): Promise<{ readonly messageId: string } | GraphProblem> {
  return send(account, { ...recipient, type: "text", text: { body, preview_url: false } }, world);
}

/** Uploads a file. Nobody sees it before it is sent, so an upload can be repeated. */
async function upload(
  account: WhatsAppAccount,
  file: OutgoingFile,
  world: World,
): Promise<{ readonly id: string } | GraphProblem> {
  const form = { file, fields: { messaging_product: "whatsapp", type: file.mimeType } };
  const answer = await ask(account, "/media", { form, timeoutMs: UPLOAD_MS }, world);
  if ("kind" in answer) return answer.kind === "unclear" ? { ...answer, kind: "passing" } : answer;
  const id = textOf(answer.fields.id);
  if (id !== "") return { id };
  return { kind: "passing", words: "the platform's answer to an upload contains no id" };
}

/** Sends a file with its caption. Returns the id that the platform gave the message, or the problem. */
export async function sendFile(
  account: WhatsAppAccount,
  recipient: Recipient,
  { file, caption }: { file: OutgoingFile; caption: string },
  world: World,
): Promise<{ readonly messageId: string } | GraphProblem> {
  const uploaded = await upload(account, file, world);
  if ("kind" in uploaded) return uploaded;
  const media = { ...uploaded, ...(caption === "" ? {} : { caption }) };
  const isImage = IMAGE_TYPES.includes(file.mimeType) && file.data.length <= IMAGE_MAX_BYTES;
  const message = isImage
    ? { type: "image", image: media }
    : { type: "document", document: { ...media, filename: file.name } };
  return send(account, { ...recipient, ...message }, world);
}

async function send(
  account: WhatsAppAccount,
  message: object,
  world: World,
): Promise<{ readonly messageId: string } | GraphProblem> {
  const body = { messaging_product: "whatsapp", ...message };
  const answer = await ask(account, "/messages", { body }, world);
  if ("kind" in answer) return answer;
  const messageId = textOf(fieldsOf(listOf(answer.fields.messages)[0]).id);
  if (messageId !== "") return { messageId };
  // A proxy may have sent this answer instead of the platform.
  return { kind: "unclear", words: "the platform's answer contains no message id" };
}

/** Shows a typing indicator for some seconds, which also marks this message as read. */
export async function showTyping(account: WhatsAppAccount, messageId: string, world: World): Promise<void> {
  await send(account, { status: "read", message_id: messageId, typing_indicator: { type: "text" } }, world);
}

/** Checks whether the account works. Returns the account's name at the platform, or the problem. */
export async function askNumber(
  account: WhatsAppAccount,
  world: World,
  signal?: AbortSignal,
): Promise<{ readonly name: string } | GraphProblem> {
  const path = "?fields=verified_name,display_phone_number";
  const answer = await ask(account, path, optional({ stop: signal }), world);
  if ("kind" in answer) return answer;
  const number = textOf(answer.fields.display_phone_number);
  if (number === "") return { kind: "account", words: "the server at graphUrl is not the Graph API" };
  const name = textOf(answer.fields.verified_name);
  const whole = name === "" ? number : `${name} (${number})`;
  return { name: head(safeLine(whole), NAME_CHARS_MAX) };
}
