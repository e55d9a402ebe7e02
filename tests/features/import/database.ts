// Makes small databases in the layout of newer OpenClaw versions.

import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";

export const AGENT = "agents/main/agent/openclaw-agent.sqlite";
export const STATE = "state/openclaw.sqlite";

const TABLES = `
  create table session_nodes (session_key text primary key, current_session_id text, entry_json text);
  create table session_windows (session_id text primary key, session_key text);
  create table transcript_events (session_id text, seq integer, event_json text, event_zstd blob,
    primary key (session_id, seq));
`;

/** Opens a database of a source for writing. */
export function open(dir: string, path: string): DatabaseSync {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  return new DatabaseSync(join(dir, path), { enableForeignKeyConstraints: false });
}

/** Runs statements on a database of a source. */
export function run(dir: string, path: string, sql: string): void {
  const database = open(dir, path);
  database.exec(sql);
  database.close();
}

interface Conversation {
  readonly key: string;
  readonly sessionId: string;
  readonly entry?: object;
  readonly events: readonly (string | object)[];
}

/** Makes the database of the agent `main` with these sessions. */
export function agentDatabase(dir: string, conversations: readonly Conversation[], extra = ""): void {
  const database = open(dir, AGENT);
  database.exec(TABLES + extra);
  const node = database.prepare("insert into session_nodes values (?, ?, ?)");
  const event = database.prepare(
    "insert into transcript_events (session_id, seq, event_json) values (?, ?, ?)",
  );
  for (const { key, sessionId, entry, events } of conversations) {
    node.run(key, sessionId, JSON.stringify({ sessionId, updatedAt: 1_700_000_000_000, ...entry }));
    for (const [seq, value] of events.entries())
      event.run(sessionId, seq, typeof value === "string" ? value : JSON.stringify(value));
  }
  database.close();
}

/** Returns a message of a person as an event. */
export function said(id: string, content: string, parentId: string | null = null): object {
  return { type: "message", id, parentId, message: { role: "user", content } };
}
