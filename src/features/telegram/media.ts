// Reads a file of a message, with limits. A failure contains the reason.
// TM1: only paths below the bot's own files are read.

import type { InboundMedia } from "../../channels/channel.ts";
import { fieldsOf, integerOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Bot } from "./bot.ts";
import { failureWords } from "./send.ts";
import type { FileRef } from "./update.ts";

/** Maximum size of a file that Telegram's own servers offer for download. */
const PLATFORM_MB_MAX = 20;

function isPathBelow(path: string): boolean {
  return path.isWellFormed() && path.split("/").every((step) => !["", ".", ".."].includes(step));
}

const tooLarge = (bytes: number, maxBytes: number) =>
  fail("too_large", `the file has ${bytes} bytes; the maximum is ${maxBytes}`);

async function load(
  bot: Bot,
  file: FileRef,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Result<Uint8Array>> {
  if (file.bytes !== undefined && file.bytes > maxBytes) return tooLarge(file.bytes, maxBytes);
  const told = await bot.call((methods, either) => methods.getFile({ file_id: file.fileId }, either), {
    signal,
  });
  if (told.kind !== "done") {
    const isTooBig = told.kind === "refused" && /file is too big/i.test(told.why);
    if (isTooBig) return fail("too_large", `Telegram lets bots download at most ${PLATFORM_MB_MAX} MB`);
    return fail("channel_failed", failureWords(told));
  }
  const path = textOf(fieldsOf(told.value).file_path);
  const bytes = integerOf(fieldsOf(told.value).file_size);
  if (path === undefined) return fail("channel_failed", "Telegram did not return the file's path");
  if (bytes !== undefined && bytes > maxBytes) return tooLarge(bytes, maxBytes);
  if (path.startsWith("/")) {
    return fail("channel_failed", "the Bot API server runs with --local, so it sends no files over HTTP");
  }
  if (!isPathBelow(path)) return fail("channel_failed", "Telegram returned an invalid file path");
  const read = await bot.file(path, maxBytes, signal);
  return read.kind === "done" ? ok(read.value) : fail("channel_failed", failureWords(read));
}

export function mediaOf(bot: Bot, file: FileRef): InboundMedia {
  const { kind, name, mimeType, bytes } = file;
  return {
    kind,
    ...optional({ name, mimeType, bytes }),
    load: (maxBytes, signal) => load(bot, file, maxBytes, signal),
  };
}
