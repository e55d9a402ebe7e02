// Reads a small text file of a folder. A link must stay in the folder, so that a file of a foreign repository
// cannot make the gateway show another file of its user.

import type { Stats } from "node:fs";
import { openToRead, resolvePath } from "../files/workspace.ts";

export interface SmallText {
  readonly text: string;
  /** Where the file is, if a link leads there. */
  readonly real: string;
  /** Size of the whole file. */
  readonly bytes: number;
  readonly cut: boolean;
}

/** Cuts between two characters, and returns undefined for bytes that are not text. */
function decodeText(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  let end = bytes.length;
  // A cut may leave the beginning of a character of up to four bytes.
  for (let back = 1; back <= 3 && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (length > back) end = bytes.length - back;
    break;
  }
  return new TextDecoder("utf-8").decode(bytes.subarray(0, end));
}

/**
 * Returns the beginning of a file, or a text that says why it is not used. `owners`: user ids whose files
 * count; absent: everybody's.
 */
export async function readSmall(
  folder: string,
  name: string,
  bytesMax: number,
  owners?: readonly number[],
): Promise<SmallText | string> {
  const place = await resolvePath(folder, name, { createFolders: false });
  if (!place.ok) return place.error;
  const opened = await openToRead(place.value);
  if (!opened.ok) return opened.error;
  await using handle = opened.value;
  const found: Stats = await handle.stat();
  if (owners !== undefined && !owners.includes(found.uid)) return "belongs to another user";
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytesMax), 0, bytesMax, 0);
  const text = decodeText(buffer.subarray(0, bytesRead));
  if (text === undefined) return "is not a text";
  return { text, real: place.value.real, bytes: found.size, cut: found.size > bytesRead };
}
