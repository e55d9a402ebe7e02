// Helpers for tests of store migrations: jobs, targets, temporary stores.

import type { Result } from "../../../src/core/shapes/errors.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import type { Store } from "../../../src/store/sql.ts";
import { openSqlite } from "../../../src/store/sqlite/sqlite.ts";
import type { MoveJob } from "../../../src/store/transfer/transfer.ts";
import { cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { freshSchema, runSql, serverUrl, takeSchema } from "../../kit/store/postgres.ts";
import { sampleSession, silentLog, userMessage } from "../samples.ts";

/** Returns the job that moves the embedded store in a folder, or the store in a database. */
export function jobOn(place: string | { url: string }, more: Partial<MoveJob> = {}): MoveJob {
  const store =
    typeof place === "string" ? { dir: place } : { dir: temporaryFolder(), postgresUrl: place.url };
  const { signal } = new AbortController();
  const accept: MoveJob["accept"] = async (grants) => grants.map(({ kind }) => kind);
  return { settings: { ...store, durability: "normal" }, world: quietWorld(), signal, accept, ...more };
}

export function good<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.error} ${result.hint ?? ""}`);
  return result.value;
}

/** Returns the text of a failure. */
export function words(result: Result<unknown>): string {
  if (result.ok) throw new Error("a failure was expected");
  return `${result.error} ${result.hint ?? ""}`.trim();
}

/** Returns the address of a schema that does not exist yet, and is dropped after the test. */
export async function freshUrl(): Promise<string> {
  const { url, schema } = freshSchema(await serverUrl());
  cleanup(() => runSql(url, `drop schema if exists "${schema}" cascade`).then(() => {}));
  return url;
}

/** Returns the address of an empty store. */
export async function emptyUrl(): Promise<string> {
  const { url, give } = await takeSchema();
  cleanup(give);
  return url;
}

export function schemaOf(url: string): string {
  return new URL(url).searchParams.get("schema") ?? "parley";
}

export async function inEmbedded<T>(dir: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqlite({ dir, durability: "normal", log: silentLog });
  return work(store).finally(() => store.close());
}

export async function inPostgres<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openPostgres({ url, world: quietWorld() });
  return work(store).finally(() => store.close());
}

/** Adds a session with a message. */
export async function saySomething(store: Store, text = "hello"): Promise<void> {
  await store.transaction(async (tx) => {
    await insertSession(tx, sampleSession());
    const entry = userMessage("m1", text);
    await appendEntry(tx, { sessionKey: "agent:main:main", sessionId: "session-1", entry }, plainRedactor);
  });
}

/** Makes an embedded store with a message. */
export async function smallStore(): Promise<string> {
  const dir = temporaryFolder();
  await inEmbedded(dir, saySomething);
  return dir;
}

/** The schema version of an embedded store before the tables had one definition. */
export const VERSION_BEFORE = 47;
/** Statements that give an embedded file what that version had, and its number. */
export const AS_BEFORE = `
  create table job_waits (call_id text not null, flow_id text not null, primary key (call_id, flow_id)) strict;
  alter table runs add column pool text; alter table runs add column resuming integer not null default 0;
  alter table runs add column crashes_in_row integer not null default 0;
  alter table runs add column calls_answered integer not null default 0;
  pragma user_version = ${VERSION_BEFORE};`;
