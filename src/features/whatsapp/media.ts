// Downloads media files: requests the URL of a file by its id, and then downloads the file.
// WD1: the number of bytes is limited.
// WD2: the token is sent only to the configured host, and to HTTPS URLs that this host returns.

import type { Exchanged } from "../../channels/exchange.ts";
import { fieldsOf, jsonOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { World } from "../../world.ts";
import { textOf } from "./fields.ts";
import { askGraph } from "./graph.ts";
import { problemOf } from "./problems.ts";
import type { WhatsAppAccount } from "./whatsapp.ts";

const ADDRESS_BYTES_MAX = 64 * 1024;
const ADDRESS_TIMEOUT_MS = 20_000;
const MEDIA_TIMEOUT_MS = 120_000;

function tooLarge(maxBytes: number): Result<never> {
  return fail("too_large", `the file is larger than ${maxBytes} bytes`);
}

function unread(answer: Exchanged, token: string): Result<never> {
  const why = problemOf(answer, token)?.words ?? "the answer has an unknown format";
  const isGone = answer.kind === "answered" && (answer.status === 404 || answer.status === 410);
  // The platform keeps media only for some days.
  if (isGone) return fail("file_not_found", `WhatsApp no longer has this file: ${why}`);
  return fail("file_problem", `the file could not be read from WhatsApp: ${why}`);
}

/** Returns the URL of the file, if a request to it is allowed (WD2). */
function addressIn(text: string, graphUrl: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return undefined;
  return url.protocol === "https:" || url.origin === new URL(graphUrl).origin ? url : undefined;
}

/** Downloads a media file by its id. Fails if it has more than `maxBytes`. */
export async function readMedia(
  { graphUrl, phoneNumberId, accessToken: token }: WhatsAppAccount,
  id: string,
  maxBytes: number,
  { world, signal }: { world: World; signal: AbortSignal },
): Promise<Result<Uint8Array>> {
  const url = new URL(`${graphUrl}/${encodeURIComponent(id)}`);
  url.searchParams.set("phone_number_id", phoneNumberId);
  const common = { token, stop: signal, configured: graphUrl };
  const bounds = { bytesMax: ADDRESS_BYTES_MAX, timeoutMs: ADDRESS_TIMEOUT_MS };
  const asked = await askGraph({ ...common, purpose: "channel", url, ...bounds }, world);
  if (asked.kind !== "answered" || problemOf(asked, token) !== undefined) return unread(asked, token);
  const said = fieldsOf(jsonOf(asked.body));
  if (Number(said.file_size) > maxBytes) return tooLarge(maxBytes);
  const address = addressIn(textOf(said.url), graphUrl);
  if (address === undefined) return fail("file_problem", "WhatsApp returned no usable URL for the file");
  const read = await askGraph(
    { ...common, purpose: "media", url: address, bytesMax: maxBytes, timeoutMs: MEDIA_TIMEOUT_MS },
    world,
  );
  if (read.kind === "too_long" && read.status < 300) return tooLarge(maxBytes);
  if (read.kind !== "answered" || problemOf(read, token) !== undefined) return unread(read, token);
  return ok(read.body);
}
