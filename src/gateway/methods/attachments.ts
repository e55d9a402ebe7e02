// Reads attachments, which are pictures that are sent to the model with a message.
// If one of them cannot be used, the whole request is refused.

import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import { base64Parts } from "../../core/text/base64.ts";

export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const DATA_URL = /^data:([^;,]+);base64,/;
/** Maximum bytes of a picture; providers accept no larger ones. */
const IMAGE_MAX_BYTES = 10 * 1024 * 1024;

/** Decodes a picture from Base64 or a data URL. `where`: its position, for the error. */
export function readImage(given: string, mimeType: unknown, where: string): Result<ImageBlock> {
  const prefix = DATA_URL.exec(given.slice(0, 100));
  const type = prefix?.[1] ?? mimeType;
  if (typeof type !== "string" || !IMAGE_TYPES.includes(type)) {
    const shown = JSON.stringify(type ?? null).slice(0, 60);
    const types = IMAGE_TYPES.join(", ");
    return fail("invalid_argument", `${where}.mimeType must be one of ${types}, got ${shown}`);
  }
  const text = given.slice(prefix?.[0].length ?? 0);
  const { digits, wrongAt } = base64Parts(text);
  if (digits === "" || text.length % 4 !== 0 || wrongAt !== undefined) {
    return fail("invalid_argument", `${where}.content is not valid base64`);
  }
  if ((text.length / 4) * 3 > IMAGE_MAX_BYTES) {
    return fail("too_large", `${where} is larger than ${IMAGE_MAX_BYTES} bytes`);
  }
  return ok({ type: "image", data: text, mimeType: type });
}

function image(attachment: Readonly<Record<string, unknown>>, where: string): Result<ImageBlock> {
  const given = attachment.content ?? attachment.data;
  if (typeof given !== "string") return fail("invalid_argument", `${where}.content must be base64 text`);
  return readImage(given, attachment.mimeType, where);
}

/** Returns the pictures among a request's attachments; any other attachment is an error that names it. */
export function readImages(attachments: readonly object[] | undefined): Result<ImageBlock[]> {
  const images: ImageBlock[] = [];
  for (const [index, attachment] of (attachments ?? []).entries()) {
    const read = image(attachment as Record<string, unknown>, `attachments.${index}`);
    if (!read.ok) return read;
    images.push(read.value);
  }
  return ok(images);
}
