// Builds a state folder in the format of OpenClaw and Clawdbot. Each agent has a folder with `sessions.json`
// (a map from session key to entry) and one JSONL file for each transcript: a header line, then entries that
// form a tree by `id` and `parentId`.

import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryFolder } from "../../kit/engine/engine.ts";

export const START = Date.parse("2026-01-20T10:00:00.000Z");

export type Line = Record<string, unknown> | string;

/** Writes a file and creates its folders. */
export function put(dir: string, path: string, text: string | Buffer): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  writeFileSync(join(dir, path), text);
}

export interface SourceWanted {
  /** The entries of each agent's `sessions.json`. */
  readonly agents?: Record<string, Record<string, unknown>>;
  /**
   * The lines after the header of each transcript, by the transcript's path below `agents/` without `.jsonl`.
   */
  readonly transcripts?: Record<string, readonly Line[]>;
  readonly config?: Record<string, unknown>;
}

export function sourceWith({ agents = {}, transcripts = {}, config }: SourceWanted): string {
  const dir = temporaryFolder();
  for (const [id, sessions] of Object.entries(agents)) {
    put(dir, `agents/${id}/sessions/sessions.json`, JSON.stringify(sessions, null, 2));
  }
  for (const [path, lines] of Object.entries(transcripts)) putTranscript(dir, path, lines);
  if (config !== undefined) put(dir, "openclaw.json", JSON.stringify(config));
  return dir;
}

export function putTranscript(dir: string, path: string, lines: readonly Line[]): void {
  const header = {
    type: "session",
    version: 3,
    id: path.split("/").at(-1),
    timestamp: iso(0),
    cwd: "/srv/x",
  };
  const [agent = "", file = ""] = path.split("/");
  const text = [header, ...lines].map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
  put(dir, `agents/${agent}/sessions/${file}.jsonl`, `${text.join("\n")}\n`);
}

const iso = (minute: number): string => new Date(START + minute * 60_000).toISOString();

/**
 * Builds the lines of a conversation. Each entry follows the previous one, unless it names another parent.
 */
export class Talk {
  readonly lines: Line[] = [];
  #last: string | null = null;
  #count = 0;

  entry(fields: Record<string, unknown>): string {
    this.#count += 1;
    const id = (fields.id as string | undefined) ?? this.#count.toString(16).padStart(8, "0");
    this.lines.push({ parentId: this.#last, timestamp: iso(this.#count), ...fields, id });
    this.#last = id;
    return id;
  }

  message(message: Record<string, unknown>, more: Record<string, unknown> = {}): string {
    return this.entry({
      type: "message",
      message: { timestamp: START + this.#count * 60_000, ...message },
      ...more,
    });
  }

  user(text: string, more: Record<string, unknown> = {}): string {
    return this.message({ role: "user", content: [{ type: "text", text }] }, more);
  }

  assistant(content: string | readonly unknown[], more: Record<string, unknown> = {}): string {
    return this.message(
      {
        role: "assistant",
        content: typeof content === "string" ? [{ type: "text", text: content }] : content,
        api: "anthropic-messages",
        provider: "anthropic",
        model: "claude-opus-4-5",
        usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 15, cost: { total: 0.01 } },
        stopReason: "stop",
      },
      more,
    );
  }

  call(id: string, name = "exec"): string {
    return this.assistant([{ type: "toolCall", id, name, arguments: { command: "date" } }]);
  }

  result(toolCallId: string, text: string, more: Record<string, unknown> = {}): string {
    const content = [{ type: "text", text }];
    return this.message({
      role: "toolResult",
      toolCallId,
      toolName: "exec",
      content,
      isError: false,
      ...more,
    });
  }

  /** Adds a line that is not an entry. */
  raw(text: string): void {
    this.lines.push(text);
  }
}

/** Returns a hash of everything in a folder: names, types, modes and contents. */
export function hashOf(dir: string): string {
  const hash = createHash("sha256");
  const walk = (at: string): void => {
    for (const name of readdirSync(at).sort()) {
      const path = join(at, name);
      const found = lstatSync(path);
      hash.update(`${path} ${found.mode} ${found.mtimeMs} ${found.size}\n`);
      if (found.isSymbolicLink()) hash.update(readlinkSync(path));
      else if (found.isDirectory()) walk(path);
      else if (found.isFile()) hash.update(readFileSync(path));
    }
  };
  walk(dir);
  return hash.digest("hex");
}
