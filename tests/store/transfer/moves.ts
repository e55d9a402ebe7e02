// Helpers for tests of store migrations: jobs, targets, temporary stores.

import type { Result } from "../../../src/core/shapes/errors.ts";
import { openPostgres } from "../../../src/store/postgres/postgres.ts";
import { insertSession } from "../../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../../src/store/queries/transcripts/append.ts";
import { SCHEMA_VERSION } from "../../../src/store/schema/sqlite-schema.ts";
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

/** Statements that undo each schema migration, the newest first. */
const UNDONE = [
  `drop index waits_of_call; drop index waits_for_jobs;
  alter table waits drop column of_call; alter table waits drop column kind;`,
  "drop table agent_days; drop index runs_begun;",
  `drop index runs_ready; drop table slots;
  alter table runs drop column queue; alter table runs drop column ready_at;
  alter table runs drop column deaths; alter table runs drop column planned_stop;`,
  `drop trigger delivery_queued; drop trigger delivery_moved;
  drop index deliveries_in_queue; drop index deadlines_by_kind; drop index deadlines_of_files;
  delete from deadlines where kind like 'texts %' or kind like 'hooks %';
  alter table deliveries drop column give_up_at;`,
  "alter table cron_jobs drop column conversation;",
  `drop index waits_by_deadline; drop index job_waits_by_deadline;
  drop index flows_by_requester; drop index flows_by_target; drop index refusals_of_session;
  drop index permissions_of_session; drop index deliveries_of_file;
  alter table deliveries drop column erase; alter table ledger drop column chain_id;`,
  "alter table deliveries drop column controls_json;",
  `drop table instruction_contents; alter table sessions drop column outside;
  alter table chains drop column outside;`,
  "alter table node_requests drop column asked_by;",
  `drop index cron_jobs_of_session;
  alter table cron_jobs drop column session_key; alter table cron_jobs drop column call_id;
  alter table cron_jobs drop column outside;`,
  "alter table job_waits drop column owner;",
  "alter table chains drop column token_limit;",
  "drop table peers;",
  "drop table revisions; alter table runs drop column revision;",
  "drop table push_configs;",
  "drop table remote_tasks;",
  "drop table gateway_keys;",
  "drop table sent_files; alter table deliveries drop column file_id;",
  "alter table sessions drop column instructions;",
  "alter table processes drop column config_revision;",
  `drop trigger session_named; drop trigger session_renamed; alter table sessions drop column first_words;
  create trigger session_named after insert on sessions begin
    insert into session_names (rowid, name)
      values (new.row_id, concat_ws(char(10), new.key, new.label, new.display_name));
  end;
  create trigger session_renamed after update of key, label, display_name on sessions
    when old.key is not new.key or old.label is not new.label or old.display_name is not new.display_name
  begin
    delete from session_names where rowid = old.row_id;
    insert into session_names (rowid, name)
      values (new.row_id, concat_ws(char(10), new.key, new.label, new.display_name));
  end;`,
  "alter table access_tokens drop column sign_in_json;",
  "alter table chains drop column guest;",
  "drop table agent_memory;",
  `drop table permission_rules; drop index permissions_of_call;
  alter table permissions drop column call_id; alter table permissions drop column scopes_json;
  alter table permissions drop column digest; alter table permissions drop column folder;
  alter table permissions drop column scope;`,
  `drop index session_ids_by_fork;
  alter table session_ids drop column forked_from; alter table session_ids drop column forked_at;`,
  "drop table access_tokens;",
  "drop table permissions;",
  "alter table runs drop column dismissed_at;",
  `drop index sessions_failed; drop index sessions_failed_below; drop index runs_asked;
  alter table sessions drop column failed_run;`,
  "alter table runs drop column heard_at;",
  "drop table inbox_marks;",
  "drop trigger message_parts_gone; drop table message_parts;",
  "alter table runs drop column crashes_in_row; alter table runs drop column calls_answered;",
  "alter table idempotency drop column begun_by;",
  "alter table nodes drop column created_by;",
  "alter table runs drop column asked_by;",
  "drop table device_tokens;",
  "alter table cron_jobs drop column created_by;",
  `alter table runs drop column spent_tokens; alter table runs drop column spent_cost;
  alter table runs drop column reserved_tokens; alter table runs drop column reserved_cost;`,
  "drop table job_waits; alter table flows drop column outcome_json;",
  "drop index sessions_by_agent_kind;",
  `drop table inbound; drop table channel_peers; drop table channel_cursors; drop table thread_bindings;
  drop table nodes; drop table node_requests;
  drop index ledger_of_agent; drop index ledger_by_age;
  alter table ledger drop column root_key;`,
  `drop table cron_runs; drop table cron_jobs;
  drop table refusals; drop index chains_newest;
  alter table chains drop column last_at; alter table chains drop column crossed;
  drop index sessions_roots;
  alter table sessions drop column cost; alter table sessions drop column orphaned;`,
  `drop table processes; drop table holdings; drop table live_payloads; drop index runs_by_end;
  alter table runs drop column pool; alter table runs drop column resuming;
  alter table waits drop column owner; alter table deliveries drop column attempt_owner;`,
];

/** Returns the statements that make the schema of an embedded file one of an earlier version. */
export function undoMigrations({ to }: { readonly to: number }): string {
  return `${UNDONE.slice(0, SCHEMA_VERSION - to).join("\n")} pragma user_version = ${to};`;
}
