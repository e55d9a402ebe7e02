// Owns how files that come with a message are read.
// DM1: only from Discord's own hosts, or the configured one; the token is not sent along, no redirect is
//      followed, and no more is read than is wanted.

import { fail, ok, type Result } from "../../core/errors.ts";
import type { InboundMedia } from "../channel.ts";
import { type Fields, objectsOf, textOf } from "../fields.ts";
import { numberOf } from "./fields.ts";
import { readBody } from "./rest.ts";

/** Discord allows ten. */
const FILES_MAX = 10;
const HOSTS = ["cdn.discordapp.com", "media.discordapp.net"];
const VOICE_FLAG = 1 << 13;

function kindOf(mimeType: string, isVoice: boolean): InboundMedia["kind"] {
  if (isVoice && !/^(image|video)\//.test(mimeType)) return "voice";
  const [kind] = mimeType.split("/");
  return kind === "image" || kind === "audio" || kind === "video" ? kind : "file";
}

/** The address, if it is one that files may be read from. */
function allowed(url: string, restUrl: string): URL | undefined {
  if (!URL.canParse(url)) return undefined;
  const address = new URL(url);
  const configured = new URL(restUrl);
  if (address.origin === configured.origin) return address;
  return address.protocol === "https:" && HOSTS.includes(address.host) ? address : undefined;
}

async function load(address: URL, bytesMax: number, signal: AbortSignal): Promise<Result<Uint8Array>> {
  const tooLarge = fail("too_large", `the file is larger than ${bytesMax} bytes`);
  try {
    const answer = await fetch(address, { redirect: "error", signal });
    if (!answer.ok) {
      await answer.body?.cancel();
      return fail("file_problem", `Discord does not give the file (${answer.status})`);
    }
    const bytes = await readBody(answer.body, bytesMax);
    return bytes === undefined ? tooLarge : ok(bytes);
  } catch {
    return fail("file_problem", "the file could not be read from Discord");
  }
}

/** The files of a message. */
export function mediaOf(message: Fields, restUrl: string): InboundMedia[] {
  const isVoice = ((numberOf(message.flags) ?? 0) & VOICE_FLAG) !== 0;
  return objectsOf(message.attachments, FILES_MAX).map((file): InboundMedia => {
    const mimeType = textOf(file.content_type)?.split(";")[0]?.trim().toLowerCase();
    const name = textOf(file.filename);
    const bytes = numberOf(file.size);
    const address = allowed(textOf(file.url) ?? "", restUrl);
    return {
      kind: kindOf(mimeType ?? "", isVoice),
      ...(name === undefined ? {} : { name }),
      ...(mimeType === undefined ? {} : { mimeType }),
      ...(bytes === undefined || bytes < 0 ? {} : { bytes }),
      async load(maxBytes, signal) {
        if (address === undefined) return fail("file_problem", "the file is not at one of Discord's hosts");
        if (bytes !== undefined && bytes > maxBytes) {
          return fail("too_large", `the file has ${bytes} bytes; at most ${maxBytes} are read`);
        }
        return load(address, maxBytes, signal);
      },
    };
  });
}
