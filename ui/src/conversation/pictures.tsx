// Owns the pictures of an unsent message (pasted, dropped or picked). They are kept for each session until
// they are sent or the page is closed.

import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { hello } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
import { size } from "../parts/format.ts";
import { forgetRequest } from "./drafts.ts";

/** MIME types of pictures that the gateway accepts. */
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const PICTURES_MAX = 16;
const PICTURE_MAX_BYTES = 10 * 1024 * 1024;
/** Number of bytes of a request that are reserved for everything except the pictures. */
const REQUEST_REST_BYTES = 64 * 1024;

interface Picture {
  readonly id: number;
  readonly name: string;
  readonly mimeType: string;
  /** The picture's bytes in base64. */
  readonly content: string;
}

const held = signal<ReadonlyMap<string, readonly Picture[]>>(new Map());
let count = 0;

/** Returns the unsent pictures of a session. A component that calls it is redrawn when they change. */
export function picturesOf(sessionKey: string): readonly Picture[] {
  return held.value.get(sessionKey) ?? [];
}

export function keepPictures(sessionKey: string, pictures: readonly Picture[]): void {
  held.value = new Map(held.value).set(sessionKey, pictures);
  forgetRequest(sessionKey);
}

function read(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error(`Could not read ${file.name}.`));
    reader.readAsDataURL(file);
  });
}

function problemOf({ name, type, size: bytes }: File): string | undefined {
  if (!TYPES.includes(type)) return `${name} has an unsupported type. Send PNG, JPEG, GIF or WebP.`;
  return bytes > PICTURE_MAX_BYTES ? `${name} is larger than ${size(PICTURE_MAX_BYTES)}.` : undefined;
}

/** Returns the reason why pictures of this number and length can't be sent together. */
function problemOfAll(pictures: number, chars: number): string | undefined {
  if (pictures > PICTURES_MAX) return `A message takes at most ${PICTURES_MAX} pictures.`;
  const most = (hello.value?.policy.maxPayload ?? Number.POSITIVE_INFINITY) - REQUEST_REST_BYTES;
  if (chars <= most) return undefined;
  return `The pictures of a message must be smaller than ${size((most * 3) / 4)} together.`;
}

/** Adds files to the unsent pictures. If one of them can't be sent, throws the reason. */
export async function addPictures(sessionKey: string, files: readonly File[]): Promise<void> {
  const check = (pictures: readonly Picture[], more: readonly File[]): void => {
    const bytes = more.reduce((sum, file) => sum + file.size, 0);
    const chars = pictures.reduce((sum, { content }) => sum + content.length, 0) + (bytes * 4) / 3;
    const problem =
      more.map(problemOf).find((one) => one !== undefined) ??
      problemOfAll(pictures.length + more.length, chars);
    if (problem !== undefined) throw new Error(problem);
  };
  // Check before reading the files, because a folder of photos would not fit into memory.
  check(picturesOf(sessionKey), files);
  const added = await Promise.all(
    files.map(async (file): Promise<Picture> => {
      count += 1;
      return { id: count, name: file.name, mimeType: file.type, content: await read(file) };
    }),
  );
  const all = [...picturesOf(sessionKey), ...added];
  // Check again, because other pictures may have been added while the files were read.
  check(all, []);
  keepPictures(sessionKey, all);
}

export function Pictures({ sessionKey }: { sessionKey: string }) {
  const pictures = picturesOf(sessionKey);
  if (pictures.length === 0) return null;
  return (
    <ul class="line own-line pictures" aria-label="Pictures">
      {pictures.map(({ id, name, mimeType, content }) => (
        <li key={id} class="row">
          <img src={`data:${mimeType};base64,${content}`} alt={name} />
          <Button
            text="×"
            class="quiet small"
            aria-label={`Remove ${name}`}
            onClick={() =>
              keepPictures(
                sessionKey,
                pictures.filter((one) => one.id !== id),
              )
            }
          />
        </li>
      ))}
    </ul>
  );
}

export function PickPictures({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        accept={TYPES.join(",")}
        multiple
        hidden
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // Clear the field, so that the same file can be picked again.
          currentTarget.value = "";
        }}
      />
      <Button text="Add picture" class="quiet" onClick={() => input.current?.click()} />
    </>
  );
}
