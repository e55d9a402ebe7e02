// Keeps the log levels that MCP clients of older revisions asked for, in this process only. A client that
// asked for none gets no log messages. MCP has deprecated them for progress, which has the same content.

import type { LoggingLevel } from "@modelcontextprotocol/server";

/** Maximum number of clients. The one that asked first is forgotten first. */
const CLIENTS_MAX = 1_000;
/** Levels at which reports of a waiting call, which have the level `info`, are sent. */
const WITH_REPORTS: readonly LoggingLevel[] = ["debug", "info"];

export class LogLevels {
  readonly #levels = new Map<string, LoggingLevel>();

  /** Remembers the level of the client with this session. */
  set(sessionKey: string, level: LoggingLevel): void {
    this.#levels.delete(sessionKey);
    this.#levels.set(sessionKey, level);
    const [first] = this.#levels.keys();
    if (first !== undefined && this.#levels.size > CLIENTS_MAX) this.#levels.delete(first);
  }

  /** Returns whether the client wants reports of its waiting calls. */
  wantsReports(sessionKey: string): boolean {
    const level = this.#levels.get(sessionKey);
    return level !== undefined && WITH_REPORTS.includes(level);
  }
}
