// Reads the picture of a typed line `/picture FILE WORDS`.

import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { imageTypeOf } from "../../core/shapes/picture.ts";

export interface Attachment {
  readonly mimeType: string;
  readonly content: string;
}

/** The gateway's maximum size of a picture. */
const PICTURE_MAX_BYTES = 10 * 1024 * 1024;
const LINE = /^\/picture\s+(?:"([^"]+)"|(\S+))\s*(.*)$/s;

/** `folder`: relative names begin here. A name with spaces is in double quotes. */
export async function readPicture(
  line: string,
  folder: string,
): Promise<Result<{ readonly text: string; readonly attachment: Attachment }>> {
  const [, quoted, plain, words = ""] = LINE.exec(line) ?? [];
  const name = quoted ?? plain;
  if (name === undefined) return fail("invalid_argument", "/picture needs a file, like /picture chart.png");
  const path = resolve(folder, name);
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) return fail("invalid_argument", `there is no file ${path}`);
  if (found.size > PICTURE_MAX_BYTES)
    return fail("too_large", `${path} is larger than ${PICTURE_MAX_BYTES} bytes`);
  const bytes = await readFile(path).catch(() => undefined);
  if (bytes === undefined) return fail("invalid_argument", `${path} can't be read`);
  const mimeType = imageTypeOf(bytes);
  if (mimeType === undefined)
    return fail("invalid_argument", `${path} is not a PNG, JPEG, GIF or WebP picture`);
  const text = words.trim() === "" ? "(a picture)" : words;
  return ok({ text, attachment: { mimeType, content: bytes.toString("base64") } });
}
