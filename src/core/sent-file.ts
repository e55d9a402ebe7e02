// Rules for files that agents send to people: their names and types, the channels that can send them, and the
// texts for people whose channel cannot.

import { imageTypeOf } from "./shapes/picture.ts";
import { cut } from "./text/cut.ts";

/** Highest value of the setting for the size of a file. No channel that sends files takes less. */
export const SENT_FILE_MAX_BYTES = 10 * 1024 * 1024;
/** Maximum characters of a caption. Telegram allows 1,024. */
export const CAPTION_CHARS_MAX = 900;
const NAME_CHARS_MAX = 120;
const ENDING_CHARS_MAX = 12;

const TYPES: Readonly<Record<string, string | undefined>> = {
  csv: "text/csv",
  html: "text/html",
  json: "application/json",
  md: "text/markdown",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  pdf: "application/pdf",
  svg: "image/svg+xml",
  txt: "text/plain",
  wav: "audio/wav",
  zip: "application/zip",
};

/** Returns the beginning of the ids of all files that a run sends. */
export function sentFilePrefix(runId: string): string {
  return `file-${runId}:`;
}

/**
 * Returns the id of the file that a call sends. `runId`: absent if an operator calls. No id looks like a
 * credential, such as digits, a colon and a long word: it would be redacted in the result of the call.
 */
export function sentFileId(callId: string, runId: string | undefined): string {
  const isNamed = runId === undefined || callId.startsWith(`${runId}:`);
  return isNamed ? `file-${callId}` : `${sentFilePrefix(runId)}call:${callId}`;
}

/** Returns the name under which people get the file at this path. It is safe in a header and on a disk. */
export function sentNameOf(path: string): string {
  const plain = path
    .slice(path.lastIndexOf("/") + 1)
    .toWellFormed()
    .normalize("NFC")
    .replaceAll(/[^\p{L}\p{N}\p{M} ._()+@-]/gu, "_")
    .replace(/^[. ]+/, "")
    .trim();
  if (plain === "") return "file";
  if (plain.length <= NAME_CHARS_MAX) return plain;
  const ending = /\.[A-Za-z0-9]+$/.exec(plain)?.[0] ?? "";
  const kept = ending.length <= ENDING_CHARS_MAX ? ending : "";
  return `${cut(plain.slice(0, plain.length - kept.length), NAME_CHARS_MAX - kept.length)}${kept}`;
}

/** Returns the media type of a file: that of its bytes if it is a picture, otherwise that of its name. */
export function sentTypeOf(name: string, head: Buffer): string {
  const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  const named = Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
  return imageTypeOf(head) ?? named ?? "application/octet-stream";
}

/** Formats a size: `312 bytes`, `1.5 MB`. */
function sizeWords(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const [number, unit] = bytes < 1024 ** 2 ? [bytes / 1024, "KB"] : [bytes / 1024 ** 2, "MB"];
  return `${number.toFixed(1)} ${unit}`;
}

/** Returns the text for people who do not get the file itself. */
export function insteadOfFile(file: { name: string; bytes: number; caption: string }): string {
  const line = `File: ${file.name} (${sizeWords(file.bytes)}). It is on the page of this conversation.`;
  return file.caption === "" ? line : `${line}\n\n${file.caption}`;
}
