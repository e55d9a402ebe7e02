// Finds the pictures that an agent sent during a run, for the answer to an OpenAI-compatible client.

import type { Run } from "../../core/shapes/run.ts";
import type { SentPicture } from "../../gateway/http/run-stream.ts";
import { contentOfFile, filesOfRun } from "../../store/queries/channels/sent-files.ts";
import type { Db } from "../../store/sql.ts";

/** Maximum bytes of all pictures of an answer. Later ones are left out; the page has them. */
const ALL_MAX_BYTES = 20 * 1024 * 1024;

/** Returns the pictures of a run that has ended, the oldest first. */
export async function picturesOf(db: Db, run: Run): Promise<SentPicture[]> {
  const pictures: SentPicture[] = [];
  let leftBytes = ALL_MAX_BYTES;
  for (const { id, mimeType, bytes } of await filesOfRun(db, run)) {
    if (!mimeType.startsWith("image/") || bytes > leftBytes) continue;
    const content = await contentOfFile(db, id);
    if (content === undefined) continue;
    leftBytes -= bytes;
    pictures.push({ id, mimeType, content });
  }
  return pictures;
}
