// Owns the files that describe the running gateways of a store: one for each, in the folder `running` of the
// store directory.
// GA1: a file counts only while the process that wrote it runs. So a command never asks a program that has
//      taken the configured port, and finds a gateway whose configured address has changed meanwhile.
// GA2: containers and machines that share the directory do not see each other's processes, so they neither
//      ask nor remove each other's gateways.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { markOf, pidNamespace, runningProcess } from "./process-start.ts";

const FOLDER = "running";

/** The description of a gateway for commands of its machine. */
export interface LocalGateway {
  readonly url: string;
  /** The path of its configuration file. */
  readonly config?: string | undefined;
}

interface Entry extends LocalGateway {
  readonly mark: string;
  readonly host: string;
  readonly pidNamespace: string;
}

/** Reads an entry. Any other file there is not ours. */
function readEntry(file: string): Entry | undefined {
  try {
    const entry = JSON.parse(readFileSync(file, "utf8")) as Entry | null;
    return typeof entry?.url === "string" && typeof entry.mark === "string" ? entry : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the entries of this process namespace, each with its file. */
function readEntries(storeDir: string): { file: string; entry: Entry; isRunning: boolean }[] {
  const folder = join(storeDir, FOLDER);
  let names: string[] = [];
  try {
    names = readdirSync(folder);
  } catch {
    // No gateway has used this store, or another user's gateway uses it.
  }
  const own = pidNamespace();
  return names.sort().flatMap((name) => {
    const file = join(folder, name);
    const entry = readEntry(file);
    if (entry?.pidNamespace !== own) return [];
    return [{ file, entry, isRunning: runningProcess(entry.mark) !== undefined }];
  });
}

/** Writes the description of this process's gateway. Returns a function that removes it. */
export function publishGateway(storeDir: string, gateway: LocalGateway): () => void {
  const host = hostname();
  // The first namespace has the same id on all machines, so the host's name must be the same, too.
  for (const { file, entry, isRunning } of readEntries(storeDir))
    if (!isRunning && entry.host === host) rmSync(file, { force: true });
  const entry: Entry = { ...gateway, mark: markOf(process.pid), host, pidNamespace: pidNamespace() };
  const text = JSON.stringify(entry);
  mkdirSync(join(storeDir, FOLDER), { recursive: true, mode: 0o700 });
  const file = join(storeDir, FOLDER, `${createHash("sha256").update(text).digest("hex")}.json`);
  writeFileSync(file, text, { mode: 0o600 });
  return () => rmSync(file, { force: true });
}

/** Returns the gateways that run here with the store. */
export function readGateways(storeDir: string): LocalGateway[] {
  return readEntries(storeDir).flatMap(({ entry, isRunning }) => (isRunning ? [entry] : []));
}
