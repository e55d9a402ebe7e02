// Reads the files of a message. Each file becomes a picture for the model, a file in the agent's workspace,
// or a note that says why the file is missing.
// MD1: the sender's description of a file is not trusted: the type is read from the bytes, the name is
//      sanitised, and the size is counted.
// MD2: bytes, files and time are limited, and a file that fails does not affect the others.
// MD3: files are written to disk before the message is stored. If storing the message fails, they are
//      deleted.
// MD4: slow files of one chat or one account do not stop the files of the others.

import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { foldName, nameProblem } from "../../core/rules/attachment-rules.ts";
import { fail, type Result } from "../../core/shapes/errors.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import { imageTypeOf } from "../../core/shapes/picture.ts";
import type { AgentSettings, StoreSettings } from "../../core/shapes/settings/settings.ts";
import { head } from "../../core/text/cut.ts";
import { cleanName } from "../../core/text/inbound-text.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { inboundFolder } from "../../flows/delivery/inbound-files.ts";
import {
  type AttachmentPlan,
  attachmentDir,
  attachmentOwner,
  plannedFile,
  removeAttachments,
  writeAttachments,
} from "../../flows/job/attachments.ts";
import { timeLimit, within } from "../../world/pause.ts";
import type { World } from "../../world.ts";
import { accountName } from "../accounts.ts";
import type { InboundMedia, InboundMessage } from "../channel.ts";
import { type FairLimits, fairLimit } from "./fair-limit.ts";

/** Maximum number of files per message. Further files are only counted. */
const FILES_MAX = 10;
const LOAD_MS = 30_000;
/** Time limit for all files of one message, because later messages of the sender wait for them. */
const LOADS_MS = 60_000;
/** Size limits for pictures: for one picture, and for all pictures of a message. */
const IMAGE_MAX_BYTES = 3.5 * 1024 * 1024;
const IMAGES_MAX_BYTES = 8 * 1024 * 1024;
/**
 * Maximum number of messages whose files are read at the same time. It limits the memory for the contents. A
 * slow server keeps a place for LOADS_MS, so one account or one chat must not get all places.
 */
const AT_ONCE: FairLimits = { all: 4, account: 3, chat: 2 };
/** Maximum length of file names: of the sender's name, and of the name under which the file is stored. */
const GIVEN_CHARS_MAX = 500;
const NAME_CHARS_MAX = 80;
const WHY_CHARS_MAX = 200;

/** The files of a message, as they are stored. */
export interface KeptMedia {
  readonly images: readonly ImageBlock[];
  /** For each file, a note for the model. */
  readonly notes: readonly string[];
  /** Folder of the stored files, and its path without links. Absent if there are none. */
  readonly folder?: { readonly id: string; readonly path: string };
}

export const NO_MEDIA: KeptMedia = { images: [], notes: [] };

export interface MediaTarget {
  readonly agent: AgentSettings;
  readonly maxBytes: number;
  /** True if the model can see pictures. */
  readonly seesImages: boolean;
}

const WORDS: Readonly<Record<InboundMedia["kind"], string>> = {
  image: "picture",
  voice: "voice message",
  audio: "sound file",
  video: "video",
  file: "file",
};

const ENDINGS: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "image/png": "png",
  "image/gif": "gif",
  "image/webp": "webp",
  "audio/ogg": "ogg",
  "audio/mpeg": "mp3",
  "audio/mp4": "m4a",
  "audio/aac": "aac",
  "video/mp4": "mp4",
  "application/pdf": "pdf",
  "text/plain": "txt",
};

/** Returns the MIME type from the sender, if it is valid. */
function mimeTypeOf({ mimeType = "" }: InboundMedia): string {
  const plain = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  return /^[a-z0-9][\w.+-]{0,60}\/[\w.+-]{1,60}$/.test(plain) ? plain : "application/octet-stream";
}

/** Returns a safe file name that is similar to the sender's and not in `taken`. */
function fileName(media: InboundMedia, mimeType: string, taken: ReadonlySet<string>): string {
  const { name = "" } = media;
  const given = name.length > GIVEN_CHARS_MAX * 2 ? name.slice(0, GIVEN_CHARS_MAX) + name.slice(-20) : name;
  const plain = given.normalize("NFC").replaceAll(/[^\p{L}\p{N}\p{M} ._()-]/gu, "_");
  const [, front = plain, own = ""] = /^(.*)\.([A-Za-z0-9]{1,8})$/s.exec(plain) ?? [];
  const stem = head(front.replace(/^[. ]+/, ""), NAME_CHARS_MAX).trim();
  const ending = own === "" ? (ENDINGS[mimeType] ?? "bin") : own;
  const base = nameProblem(`${stem}.${ending}`) === undefined && stem !== "" ? stem : media.kind;
  for (let count = 1; ; count += 1) {
    const numbered = `${base}${count === 1 ? "" : `-${count}`}.${ending}`;
    if (!taken.has(foldName(numbered)) && nameProblem(numbered) === undefined) return numbered;
  }
}

/** Describes a file: its kind, and its name as the sender chose it. */
function describeFile(media: InboundMedia): string {
  const name = cleanName(media.name);
  return `${WORDS[media.kind]}${name === undefined ? "" : ` ${JSON.stringify(name)}`}`;
}

function missing(media: InboundMedia, why: string, redactor: Redactor): string {
  const words = head(cleanName(redactor.mask(why)) ?? "unknown reason", WHY_CHARS_MAX);
  return `[A ${describeFile(media)} came with this message, but is missing: ${words}]`;
}

interface Gathered {
  readonly images: ImageBlock[];
  readonly files: ReturnType<typeof plannedFile>[];
  readonly notes: string[];
  /** Total bytes of pictures so far. */
  shown: number;
  /** Total bytes of all files so far. */
  bytes: number;
}

type MessageWithFiles = Pick<InboundMessage, "channel" | "accountId" | "chat" | "media">;

export interface MediaReader {
  /** Reads the files of a message. Never fails: a file that cannot be read becomes a note. */
  read(message: MessageWithFiles, target: MediaTarget): Promise<KeptMedia>;
  /** Deletes the files of a message that was not stored. */
  drop(kept: KeptMedia, target: Pick<MediaTarget, "agent">): Promise<void>;
}

interface ReaderParts {
  readonly world: World;
  readonly store: StoreSettings;
}

/** Reads one file. If this takes too long or throws, returns a failure. */
async function load(
  world: World,
  media: InboundMedia,
  maxBytes: number,
  timeMs: number,
): Promise<Result<Uint8Array>> {
  using limit = timeLimit(world.clock, timeMs, { reason: new Error("loading took too long") });
  const read = async (): Promise<Result<Uint8Array>> => {
    try {
      return await media.load(maxBytes, limit.signal);
    } catch (error) {
      world.log.warn({ err: error }, "a file that came with a message could not be read");
      return fail("file_problem", "the content could not be read");
    }
  };
  const loaded = await within(world.clock, timeMs, read());
  // The signal may end the reading with a failure of its own.
  return loaded === undefined || limit.late.aborted
    ? fail("file_problem", `it could not be loaded within ${Math.ceil(timeMs / 1_000)} seconds`)
    : loaded;
}

/** Adds one file to the pictures or to the files, with a note. */
function take(into: Gathered, media: InboundMedia, data: Buffer, { seesImages }: MediaTarget): void {
  const imageType = imageTypeOf(data);
  const fits = data.length <= IMAGE_MAX_BYTES && into.shown + data.length <= IMAGES_MAX_BYTES;
  if (seesImages && imageType !== undefined && fits) {
    into.images.push({ type: "image", data: data.toString("base64"), mimeType: imageType });
    into.shown += data.length;
    into.notes.push(`[A ${describeFile(media)} is part of this message.]`);
    return;
  }
  const mimeType = imageType ?? mimeTypeOf(media);
  const name = fileName(media, mimeType, new Set(into.files.map((file) => foldName(file.name))));
  into.files.push(plannedFile(name, mimeType, data));
}

async function gather(world: World, media: readonly InboundMedia[], target: MediaTarget): Promise<Gathered> {
  const into: Gathered = { images: [], files: [], notes: [], shown: 0, bytes: 0 };
  const { maxBytes } = target;
  const endsAt = world.clock.monotonic() + LOADS_MS;
  const megabytes = `${Math.round((maxBytes / 1024 / 1024) * 10) / 10} MB`;
  for (const [at, one] of media.entries()) {
    if (at === FILES_MAX) {
      into.notes.push(`[${media.length - at} more files came with this message; ${FILES_MAX} is the limit.]`);
      break;
    }
    const left = Math.min(maxBytes, maxBytes * 2 - into.bytes);
    if ((one.bytes ?? 0) > maxBytes) {
      into.notes.push(missing(one, `it is larger than ${megabytes}`, world.redactor));
      continue;
    }
    if (left <= 0 || (one.bytes ?? 0) > left) {
      into.notes.push(missing(one, "the files of this message are too large in total", world.redactor));
      continue;
    }
    const timeMs = Math.min(LOAD_MS, endsAt - world.clock.monotonic());
    if (timeMs <= 0) {
      into.notes.push(missing(one, "loading the earlier files took too long", world.redactor));
      continue;
    }
    const loaded = await load(world, one, left, timeMs);
    if (loaded.ok && loaded.value.length <= left) {
      into.bytes += loaded.value.length;
      take(into, one, Buffer.from(loaded.value), target);
    } else {
      into.notes.push(
        missing(one, loaded.ok ? `it is larger than ${megabytes}` : loaded.error, world.redactor),
      );
    }
  }
  return into;
}

export function createMediaReader({ world, store }: ReaderParts): MediaReader {
  const inTurn = fairLimit(AT_ONCE);
  const keep = async (into: Gathered, { agent }: MediaTarget): Promise<KeptMedia> => {
    const { images, files, notes } = into;
    if (files.length === 0) return { images, notes };
    const folder = inboundFolder(world.ids.uuid());
    const plan: AttachmentPlan = { files };
    const written = await writeAttachments(agent.workspace, plan, folder, attachmentOwner(store));
    if (!written.ok) {
      world.log.error({ why: written.error, agentId: agent.id }, "files of a message could not be stored");
      const named = files.map(
        ({ name }) => `[A file ${JSON.stringify(name)} came with this message, but could not be stored.]`,
      );
      return { images, notes: [...notes, ...named] };
    }
    const dir = attachmentDir(folder);
    const lines = files.map(
      ({ name, bytes, mimeType }) => `[Sent with this message: ${dir}/${name} (${mimeType}, ${bytes} bytes)]`,
    );
    const path = await realpath(join(agent.workspace, dir));
    return { images, notes: [...notes, ...lines], folder: { id: folder, path } };
  };
  return {
    async read({ channel, accountId, chat, media }, target) {
      if (media.length === 0) return NO_MEDIA;
      const group = { account: accountName(channel, accountId), chat: chat.id };
      return inTurn(group, async () => keep(await gather(world, media, target), target));
    },
    async drop({ folder }, { agent }) {
      if (folder === undefined) return;
      const removed = await removeAttachments(agent.workspace, attachmentDir(folder.id));
      if (!removed.ok) world.log.warn({ why: removed.error }, "files of a message could not be deleted");
    },
  };
}
