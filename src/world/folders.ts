// Owns how a folder comes to be, with those above it, and what is inside of it.
// FO1: asking ends, wherever the folder is to be: Node's own `recursive` never does where the folder above is
//      there and the file system makes none in it (/proc, the folders of an automounter).

import { mkdir, stat } from "node:fs/promises";
import { dirname, sep } from "node:path";

/** Whether a whole path is that of the folder, or of something below it. Nothing is looked up. */
export const isInside = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/** Makes what is missing of a folder and those above it, for their owner alone. */
export async function ensureFolder(path: string): Promise<void> {
  try {
    await mkdir(path, 0o700);
  } catch (error) {
    if (await isFolder(path)) return;
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const above = dirname(path);
    if (await isFolder(above)) {
      const text = `EPERM: no folder can be made there, mkdir '${path}'`;
      throw Object.assign(new Error(text, { cause: error }), { code: "EPERM" });
    }
    await ensureFolder(above);
    await mkdir(path, 0o700).catch(async (again: unknown) => {
      if (!(await isFolder(path))) throw again;
    });
  }
}
