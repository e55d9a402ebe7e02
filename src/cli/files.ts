// Reads texts from files and standard input, and writes texts to files that only the user can read.

import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import type { CliParts } from "./parts.ts";

/** Returns the text on standard input. Stops reading after more than `charsMax` characters. */
export async function readStdin({ stdin }: Pick<CliParts, "stdin">, charsMax: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stdin) {
    text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    if (text.length > charsMax) break;
  }
  return text;
}

/** Reads a file. `name` is relative to the folder. */
export async function readText(folder: string, name: string): Promise<Result<string>> {
  try {
    return ok(await readFile(resolve(folder, name), "utf8"));
  } catch (error) {
    return fail("file_problem", `${name} could not be read: ${(error as Error).message}`);
  }
}

/** Writes a file. `name` is relative to the folder. Replaces a file only if there is no text `exists`. */
export async function writeText(
  folder: string,
  name: string,
  text: string,
  exists?: string,
): Promise<Result<void>> {
  const flag = exists === undefined ? "w" : "wx";
  try {
    return ok(await writeFile(resolve(folder, name), text, { flag, mode: 0o600 }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return fail("file_problem", `${name} ${exists}`);
    return fail("file_problem", `${name} could not be written: ${message}`);
  }
}

const REFUSALS: Readonly<Record<string, string>> = {
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EROFS: "the disk is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EEXIST: "a file is in the way",
  ENOTDIR: "a part of the path is no folder",
  EISDIR: "it is a folder",
};

/** Returns the failure of a command that the file system refused, or undefined for any other error. */
export function fileProblem(error: unknown): Failure | undefined {
  const { code = "", path } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  const why = REFUSALS[code];
  // A file is written beside the one that it replaces.
  return why === undefined || path === undefined
    ? undefined
    : fail("file_problem", `${path.replace(/\.parley-\d+$/, "")}: ${why}`);
}
