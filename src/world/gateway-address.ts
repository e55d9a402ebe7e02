// Owns the files that say where the gateways of a store listen: one for each process, in the folder `running`
// of the store directory.
// GA1: an address counts only while the process that wrote it runs. So a command never asks a program that
//      has taken the configured port, and finds a gateway whose configured address has changed meanwhile.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { markOf, runningProcess } from "./process-start.ts";

const FOLDER = "running";
const NAME = /^(?:[\w.!~*'()-]|%[0-7][0-9A-F])+%40\d+$/;

/** Returns the files of processes that run, and those of processes that ended without removing theirs. */
function addressFiles(storeDir: string): { running: string[]; left: string[] } {
  const folder = join(storeDir, FOLDER);
  const running: string[] = [];
  const left: string[] = [];
  let names: string[] = [];
  try {
    names = readdirSync(folder);
  } catch {
    // No gateway has used this store, or another user's gateway uses it.
  }
  for (const name of names.sort()) {
    // Any other file there is not ours.
    if (!NAME.test(name)) continue;
    const [mark = ""] = decodeURIComponent(name).split("@");
    (runningProcess(mark) === undefined ? left : running).push(join(folder, name));
  }
  return { running, left };
}

/** Writes the address of this process's gateway. Returns a function that removes it. */
export function writeAddress(storeDir: string, url: string): () => void {
  for (const file of addressFiles(storeDir).left) rmSync(file, { force: true });
  mkdirSync(join(storeDir, FOLDER), { recursive: true, mode: 0o700 });
  const file = join(storeDir, FOLDER, encodeURIComponent(`${markOf(process.pid)}@${new URL(url).port}`));
  writeFileSync(file, url, { mode: 0o600 });
  return () => rmSync(file, { force: true });
}

/** Returns the addresses of the gateways that run on this machine with the store. */
export function readAddresses(storeDir: string): string[] {
  const texts = addressFiles(storeDir).running.map((file) => {
    try {
      return readFileSync(file, "utf8");
    } catch {
      return "";
    }
  });
  return texts.filter((url) => url !== "");
}
