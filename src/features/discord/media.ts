// Reads files that were sent with a message.
// DM1: files are read only from Discord's own hosts or the configured one. The token is not sent, redirects
//      are not followed, and the size is limited.

import type { InboundMedia } from "../../channels/channel.ts";
import { exchange } from "../../channels/exchange.ts";
import { mediaKind } from "../../channels/frame.ts";
import { type Fields, numberOf, objectsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Clock } from "../../world.ts";

/** Maximum number of files in a message, set by Discord. */
const FILES_MAX = 10;
const HOSTS = ["cdn.discordapp.com", "media.discordapp.net"];
const VOICE_FLAG = 1 << 13;
/** Time limit for reading one file completely. */
const TIMEOUT_MS = 60_000;

/** The configured API address, and the clock for time limits. */
interface Source {
  readonly restUrl: string;
  readonly clock: Clock;
}

/** Returns the URL if a file may be read from it, otherwise undefined. */
function checkAddress(url: string, restUrl: string): URL | undefined {
  if (!URL.canParse(url)) return undefined;
  const address = new URL(url);
  const configured = new URL(restUrl);
  if (address.origin === configured.origin) return address;
  return address.protocol === "https:" && HOSTS.includes(address.host) ? address : undefined;
}

async function load(
  address: URL,
  { restUrl, clock }: Source,
  bytesMax: number,
  stop: AbortSignal,
): Promise<Result<Uint8Array>> {
  const asked = { purpose: "media", configured: restUrl, url: address, server: "Discord" } as const;
  const answer = await exchange({ ...asked, timeoutMs: TIMEOUT_MS, bytesMax, stop }, clock);
  if (answer.kind === "failed") {
    return fail("file_problem", `the file could not be read from Discord: ${answer.why}`);
  }
  if (answer.status !== 200) return fail("file_problem", `Discord refused the file (${answer.status})`);
  if (answer.kind === "answered") return ok(answer.body);
  return fail("too_large", `the file is larger than ${bytesMax} bytes`);
}

export function mediaOf(message: Fields, source: Source): InboundMedia[] {
  const isVoice = ((numberOf(message.flags) ?? 0) & VOICE_FLAG) !== 0;
  return objectsOf(message.attachments, FILES_MAX).map((file): InboundMedia => {
    const mimeType = textOf(file.content_type)?.split(";")[0]?.trim().toLowerCase();
    const name = textOf(file.filename);
    const bytes = numberOf(file.size);
    const address = checkAddress(textOf(file.url) ?? "", source.restUrl);
    return {
      kind: mediaKind(mimeType, isVoice),
      ...optional({ name, mimeType }),
      ...(bytes === undefined || bytes < 0 ? {} : { bytes }),
      async load(maxBytes, signal) {
        if (address === undefined) return fail("file_problem", "the file is not on one of Discord's hosts");
        if (bytes !== undefined && bytes > maxBytes) {
          return fail("too_large", `the file has ${bytes} bytes; the maximum is ${maxBytes}`);
        }
        return load(address, source, maxBytes, signal);
      },
    };
  });
}
