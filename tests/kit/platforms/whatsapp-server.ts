// A fake of WhatsApp's Cloud API: a Graph API over HTTP that checks requests, media that require a token, and
// signed web hooks.

import { createHmac } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { cleanup } from "../engine/engine.ts";
import { serveHttp } from "../loopback.ts";
import { formParts } from "./form.ts";

export const PHONE_NUMBER_ID = "106540352242922";
export const OUR_NUMBER = "15550783881";
export const ACCESS_TOKEN = "EAAGtesttoken0123456789abcdef";
export const APP_SECRET = "app-secret-of-the-tests-0123456789";
export const VERIFY_TOKEN = "a word that was agreed on";

const VERSION = "/v23.0";
const BODY_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum number of attempts to post a web hook. The pauses between attempts make a test slow. */
const ATTEMPTS_MAX = 5;

export interface SentText {
  readonly id: string;
  readonly to: string;
  readonly body: string;
}

/** Answers the next request that sends a message: a function of the test, or an error of the platform. */
type Scripted = (response: ServerResponse, taken: () => void) => void;

/** Returns an error in the format of the Graph API. */
export function graphError(code: number, message = "(#…) something", more: object = {}): string {
  const error = { message, type: "OAuthException", code, fbtrace_id: "Az8or2yhqkZfEZ", ...more };
  return JSON.stringify({ error });
}

export interface WhatsAppServer {
  readonly graphUrl: string;
  readonly sent: readonly SentText[];
  /** The body of every request that sends a message, unchanged. */
  readonly asked: readonly Record<string, unknown>[];
  /** Path and query of every request. */
  readonly paths: readonly string[];
  readonly typed: readonly string[];
  readonly media: Map<string, { bytes: Uint8Array; mimeType: string; url?: string }>;
  /** Valid tokens. */
  readonly tokens: Set<string>;
  next(scripted: Scripted): void;
  /** Answers of the next uploads. `taken` has no effect. */
  readonly uploads: Scripted[];
  /** Answers the next request that sends a message with this error. */
  fail(status: number, body: string, headers?: Record<string, string>): void;
  /** Posts a signed web hook repeatedly, until the answer is 200. Returns every status. */
  post(url: string, payload: object, secret?: string): Promise<number[]>;
  close(): Promise<void>;
}

/** Returns the body of a web hook with an event of a phone number. */
export function webHook(value: object, phoneNumberId = PHONE_NUMBER_ID): object {
  const metadata = { display_phone_number: OUR_NUMBER, phone_number_id: phoneNumberId };
  const whole = { messaging_product: "whatsapp", metadata, ...value };
  return {
    object: "whatsapp_business_account",
    entry: [{ id: "102290129340398", changes: [{ value: whole, field: "messages" }] }],
  };
}

export function signatureOf(body: string, secret = APP_SECRET): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    if (bytes > BODY_BYTES_MAX) throw new Error("the fake of WhatsApp was sent too much");
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Stores an uploaded file under a new id, and answers with the id. */
function takeUpload(
  { media, uploads }: Platform,
  request: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): void {
  const parts = formParts(request, body) ?? [];
  const field = (name: string): string | undefined =>
    parts.find((one) => one.field === name)?.bytes.toString();
  const file = parts.find(({ fileName }) => fileName !== undefined);
  if (field("messaging_product") !== "whatsapp" || file === undefined) {
    answer(response, 400, graphError(100, "(#100) The parameter file is required"));
    return;
  }
  const script = uploads.shift();
  if (script !== undefined) {
    script(response, () => {});
    return;
  }
  const id = `upload${media.size + 1}`;
  media.set(id, { bytes: file.bytes, mimeType: field("type") ?? "" });
  answer(response, 200, JSON.stringify({ id }));
}

/** Describes what is wrong with a request that sends a text or a file. Returns undefined if it is valid. */
function wrongWith(body: Record<string, unknown>): string | undefined {
  const text = body.text as { body?: unknown; preview_url?: unknown } | undefined;
  if (body.messaging_product !== "whatsapp") return "messaging_product is required";
  const file = fileOf(body);
  if (file !== undefined && (file.caption?.length ?? 0) > 1024) return "caption is too long";
  if (file === undefined && (body.type !== "text" || typeof text?.body !== "string"))
    return "text.body is required";
  if (typeof text?.body === "string" && (text.body.length === 0 || text.body.length > 4096))
    return "text.body must be 1 to 4096 characters";
  if (!["individual", "group"].includes(String(body.recipient_type))) return "recipient_type is not valid";
  if (body.recipient_type === "individual" && body.recipient === undefined) {
    return /^\d{5,20}$/.test(String(body.to)) ? undefined : "to is not valid";
  }
  const target = body.recipient ?? body.to;
  return typeof target === "string" && target !== "" ? undefined : "there is no recipient";
}

/** State of the fake platform, and the requests it received. */
interface Platform extends Pick<WhatsAppServer, "media" | "tokens" | "uploads"> {
  readonly sent: SentText[];
  readonly asked: Record<string, unknown>[];
  readonly paths: string[];
  readonly typed: string[];
  readonly scripts: Scripted[];
  port: number;
}

interface SentMedia {
  readonly id: string;
  readonly caption?: string;
}

function fileOf({ type, image, document }: Record<string, unknown>): SentMedia | undefined {
  if (type === "image") return image as SentMedia;
  return type === "document" ? (document as SentMedia) : undefined;
}

function answer(response: ServerResponse, status: number, body: string, headers: object = {}): void {
  response.writeHead(status, { "content-type": "application/json; charset=UTF-8", ...headers }).end(body);
}

function takeMessage(
  { sent, typed, scripts }: Platform,
  body: Record<string, unknown>,
  response: ServerResponse,
): void {
  if (body.status === "read") {
    typed.push(String(body.message_id));
    answer(response, 200, JSON.stringify({ success: true }));
    return;
  }
  const wrong = wrongWith(body);
  if (wrong !== undefined) {
    answer(response, 400, graphError(131009, `(#131009) ${wrong}`, { error_data: { details: wrong } }));
    return;
  }
  const to = String(body.recipient ?? body.to);
  const file = fileOf(body);
  const text = body.text as { body: string } | undefined;
  const id = `wamid.out${sent.length + 1}`;
  const take = (): void => void sent.push({ id, to, body: text?.body ?? file?.caption ?? "" });
  const script = scripts.shift();
  if (script !== undefined) {
    script(response, take);
    return;
  }
  take();
  const contacts = [{ input: to, wa_id: to }];
  answer(response, 200, JSON.stringify({ messaging_product: "whatsapp", contacts, messages: [{ id }] }));
}

function tellMedia({ media, port }: Platform, id: string, response: ServerResponse): void {
  const one = media.get(id);
  if (one === undefined) {
    const words = "Unsupported get request. Object does not exist";
    answer(response, 400, graphError(100, words, { error_subcode: 33 }));
    return;
  }
  const { bytes, mimeType, url = `http://127.0.0.1:${port}/attachments/?mid=${id}` } = one;
  const facts = { url, mime_type: mimeType, sha256: "0", file_size: String(bytes.length), id };
  answer(response, 200, JSON.stringify({ ...facts, messaging_product: "whatsapp" }));
}

async function handle(platform: Platform, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { paths, tokens, media, asked } = platform;
  const url = new URL(request.url ?? "/", "http://platform");
  paths.push(`${url.pathname}${url.search}`);
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
  const bytes = await readBody(request);
  if (!tokens.has(token)) {
    answer(response, 401, graphError(190, `Error validating access token: ${token} has expired`));
    return;
  }
  if (url.pathname === "/attachments/") {
    const one = media.get(url.searchParams.get("mid") ?? "");
    response.writeHead(one === undefined ? 404 : 200, { "content-type": one?.mimeType ?? "text/plain" });
    response.end(one?.bytes);
    return;
  }
  const [id = "", edge, ...rest] = url.pathname.slice(VERSION.length + 1).split("/");
  if (!url.pathname.startsWith(`${VERSION}/`) || rest.length > 0) {
    answer(response, 404, graphError(2500, "Unknown path components"));
    return;
  }
  if (request.method === "POST" && id === PHONE_NUMBER_ID && edge === "media") {
    takeUpload(platform, request, bytes, response);
    return;
  }
  if (request.method === "POST" && id === PHONE_NUMBER_ID && edge === "messages") {
    const body = JSON.parse(bytes.toString("utf8")) as Record<string, unknown>;
    asked.push(body);
    takeMessage(platform, body, response);
    return;
  }
  if (id === PHONE_NUMBER_ID && edge === undefined) {
    const facts = { verified_name: "Parley Test", display_phone_number: "+1 555-078-3881", id };
    answer(response, 200, JSON.stringify(facts));
    return;
  }
  tellMedia(platform, id, response);
}

/** Posts a web hook repeatedly, until the answer is 200. */
async function postSigned(url: string, payload: object, secret?: string): Promise<number[]> {
  const body = JSON.stringify(payload);
  const headers = { "content-type": "application/json", "x-hub-signature-256": signatureOf(body, secret) };
  const statuses: number[] = [];
  while (statuses.at(-1) !== 200 && statuses.length < ATTEMPTS_MAX) {
    const told = await fetch(url, { method: "POST", headers, body });
    await told.text();
    statuses.push(told.status);
  }
  return statuses;
}

export async function startWhatsApp(): Promise<WhatsAppServer> {
  const tokens = new Set([ACCESS_TOKEN]);
  const platform: Platform = {
    ...{ sent: [], asked: [], paths: [], typed: [], scripts: [], uploads: [] },
    ...{ tokens, media: new Map(), port: 0 },
  };
  const { port, origin, close } = await serveHttp((request, response) => {
    handle(platform, request, response).catch(() => response.destroy());
  });
  platform.port = port;
  cleanup(close);
  const next = (scripted: Scripted): void => void platform.scripts.push(scripted);
  return {
    ...platform,
    graphUrl: `${origin}${VERSION}`,
    close,
    next,
    fail: (status, body, headers) => next((response) => answer(response, status, body, headers)),
    post: postSigned,
  };
}

/** Formatting signs around words within a line. The word joiner (U+2060) counts as a blank. */
const PAIRS = ["*", "_", "~"].map((sign) => {
  const opening = `(?<![\\p{L}\\p{N}])[${sign}](?![\\s\u2060])`;
  const closing = `(?<![\\s\u2060])[${sign}](?![\\p{L}\\p{N}])`;
  return new RegExp(`${opening}([^\\n${sign}]+?|[^\\n]+?)${closing}`, "gu");
});

/** Code is text between three backticks, on one line or more, or between single backticks on one line. */
const CODE = /(```(?:.|\n)+?```|`(?!\u2060)[^`\n]+`)/;

/** Returns the text that a reader sees, without formatting signs and invisible characters. */
export function seenText(body: string): string {
  const code: string[] = [];
  // For the formatting signs around it, a piece of code counts as one character.
  const placed = body.replace(new RegExp(CODE, "g"), (piece) => {
    code.push(piece.replace(/^(?:```|`)|(?:```|`)$/g, ""));
    return String.fromCharCode(0xe000 + code.length - 1);
  });
  return PAIRS.reduce((text, pair) => text.replace(pair, "$1"), placed)
    .replace(/[\ue000-\uf8ff]/g, (place) => code[place.charCodeAt(0) - 0xe000] ?? "")
    .replaceAll("\u2060", "");
}
