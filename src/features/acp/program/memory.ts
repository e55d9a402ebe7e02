// Stores the session of an ACP agent that belongs to a transcript, in one small file for each transcript, so
// that the agent's next process can load it. The files belong to this host, like the agent's own memory: on
// another host, or without a file, the agent starts a new session and gets a summary of the conversation. A
// file is written in full or not at all; an unreadable one counts as missing.

import { createHash } from "node:crypto";
import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ensureFolder } from "../../../world/folders.ts";
import type { Clock } from "../../../world.ts";

export interface AcpMemory {
  /** The agent's own id of its session. */
  readonly remoteId: string;
  /** The last transcript entry that the agent has received. */
  readonly knownUpTo?: string;
  /** Total cost that the agent has reported, in USD. */
  readonly cost?: number;
  /** Digest of the command and the folder: a different program does not know this session. */
  readonly program: string;
}

const KEPT_MS = 90 * 86_400_000;
const FILE_MAX_BYTES = 16 * 1024;
const SESSION_ID = /^[\w-]{1,100}$/;

/** Returns a digest of a program's command and folder. */
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

  /** Creates the folder, and deletes files that were not used for a long time. */
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
