// Owns what is remembered of an ACP agent's own session between two of its processes: one small file for each
// transcript. It belongs to this machine, as the agent's own memory does: elsewhere, or without it, the agent
// begins anew with an account of the conversation.
// AM1: a file is written whole or not at all; one that can't be read counts as none.

import { createHash } from "node:crypto";
import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureFolder } from "../world/folders.ts";
import type { Clock } from "../world.ts";

export interface AcpMemory {
  /** The session id that the agent gave. */
  readonly remoteId: string;
  /** The last transcript entry that it was told. */
  readonly knownUpTo?: string;
  /** USD that it said it had cost so far. */
  readonly cost?: number;
  /** Of the command and folder: another program has not this memory. */
  readonly program: string;
}

const KEPT_MS = 90 * 86_400_000;
const FILE_MAX_BYTES = 16 * 1024;
const SESSION_ID = /^[\w-]{1,100}$/;

/** The mark of a program: what it is and where it works. */
export function programMark(command: readonly string[], cwd: string): string {
  return createHash("sha256")
    .update(JSON.stringify([command, cwd]))
    .digest("hex")
    .slice(0, 32);
}

function isMemory(value: unknown): value is AcpMemory {
  if (typeof value !== "object" || value === null) return false;
  const { remoteId, knownUpTo, cost, program } = value as Record<string, unknown>;
  return (
    typeof remoteId === "string" &&
    typeof program === "string" &&
    (knownUpTo === undefined || typeof knownUpTo === "string") &&
    (cost === undefined || typeof cost === "number")
  );
}

export class AcpMemories {
  readonly #dir: string;
  readonly #clock: Clock;
  #opened: Promise<void> | undefined;

  constructor(dir: string, clock: Clock) {
    this.#dir = dir;
    this.#clock = clock;
  }

  async read(sessionId: string, program: string): Promise<AcpMemory | undefined> {
    const file = this.#file(sessionId);
    if (file === undefined) return undefined;
    try {
      if ((await stat(file)).size > FILE_MAX_BYTES) return undefined;
      const value: unknown = JSON.parse(await readFile(file, "utf8"));
      return isMemory(value) && value.program === program ? value : undefined;
    } catch {
      return undefined;
    }
  }

  async write(sessionId: string, memory: AcpMemory): Promise<void> {
    const file = this.#file(sessionId);
    if (file === undefined) return;
    this.#opened ??= this.#open();
    await this.#opened;
    await writeFile(`${file}.new`, JSON.stringify(memory), { mode: 0o600 });
    await rename(`${file}.new`, file);
  }

  #file(sessionId: string): string | undefined {
    return SESSION_ID.test(sessionId) ? join(this.#dir, `${sessionId}.json`) : undefined;
  }

  /** Makes the folder, and forgets what nobody has used for long. */
  async #open(): Promise<void> {
    await ensureFolder(this.#dir);
    const oldest = this.#clock.now() - KEPT_MS;
    for (const name of await readdir(this.#dir)) {
      const file = join(this.#dir, name);
      const found = await stat(file).catch(() => undefined);
      if (found?.isFile() === true && found.mtimeMs < oldest) await rm(file, { force: true });
    }
  }
}
