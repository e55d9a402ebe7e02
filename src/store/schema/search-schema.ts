// Defines the full-text indexes of messages and of the names of sessions, which differ between the databases.

import { POSTGRES_TEXT as T } from "./definition.ts";

const NAME = "new.key, new.label, new.display_name, new.first_words";
const ADD_NAME = `insert into session_names (rowid, name) values (new.row_id, concat_ws(char(10), ${NAME}));`;

// Long texts are split into parts. The row id of a part is its message's number times 4096, plus the number
// of the part (search-text.ts).
const SQLITE_TABLES = `
create virtual table if not exists session_names
  using fts5 (name, content = '', contentless_delete = 1, tokenize = 'trigram');
create virtual table if not exists message_texts
  using fts5 (text, place, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
create virtual table if not exists message_parts
  using fts5 (text, place, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
`;

const SQLITE_TRIGGERS = `
create trigger session_named after insert on sessions begin ${ADD_NAME} end;
create trigger session_renamed after update of key, label, display_name, first_words on sessions
  when old.key is not new.key or old.label is not new.label or old.display_name is not new.display_name
    or old.first_words is not new.first_words
begin delete from session_names where rowid = old.row_id; ${ADD_NAME} end;
create trigger session_unnamed after delete on sessions begin
  delete from session_names where rowid = old.row_id;
end;
create trigger message_text_gone after delete on messages when old.role in ('user', 'assistant') begin
  delete from message_texts where rowid = old.seq;
end;
create trigger message_parts_gone after delete on messages when old.role in ('user', 'assistant') begin
  delete from message_parts where rowid >= old.seq * 4096 and rowid < (old.seq + 1) * 4096;
end;
`;

// Names are in a separate table, because a session's row changes with every run. If the server lacks the
// pg_trgm extension, and the user may not create it, a search by name reads all names.
const POSTGRES_TABLES = `
create table if not exists session_names (row_id bigint primary key, name ${T} not null);
do $$
declare
  home name;
begin
  if not exists (select from pg_extension where extname = 'pg_trgm') then
    begin
      create extension if not exists pg_trgm with schema public;
    exception when others then null;
    end;
  end if;
  select nspname into home from pg_extension join pg_namespace n on n.oid = extnamespace
    where extname = 'pg_trgm';
  if found then
    execute format(
      'create index if not exists session_names_by_part on session_names using gin (name %I.gin_trgm_ops)',
      home);
  end if;
exception when insufficient_privilege or undefined_object then null;
end $$;
create table if not exists message_texts (
  seq bigint not null,
  part bigint not null,
  words tsvector not null,
  primary key (seq, part)
);
create index if not exists message_texts_by_word on message_texts using gin (words);
`;

// Names are stored in lower case; letters beyond ASCII are converted if the server has a suitable collation.
const POSTGRES_TRIGGERS = `
do $do$
declare
  letters text := coalesce(
    (select quote_ident(collname) from pg_collation
      where collname in ('und-x-icu', 'pg_c_utf8') and collnamespace = 'pg_catalog'::regnamespace
      order by collname desc limit 1),
    '"default"');
begin
  execute format($make$
    create or replace function session_named() returns trigger language plpgsql
    set search_path from current as $body$
    begin
      insert into session_names (row_id, name)
        values (new.row_id, lower(concat_ws(chr(10), ${NAME}) collate %1$s))
        on conflict (row_id) do update set name = excluded.name;
      return null;
    end $body$
  $make$, 'pg_catalog.' || letters);
end $do$;
create or replace function session_unnamed() returns trigger language plpgsql
set search_path from current as $$
begin
  delete from session_names where row_id = old.row_id;
  return null;
end $$;
create or replace function message_texts_gone() returns trigger language plpgsql
set search_path from current as $$
begin
  delete from message_texts where seq in (select seq from gone where role in ('user', 'assistant'));
  return null;
end $$;
create or replace trigger session_named after insert on sessions
  for each row execute function session_named();
create or replace trigger session_renamed after update of key, label, display_name, first_words on sessions
  for each row when ((old.key, old.label, old.display_name, old.first_words)
    is distinct from (new.key, new.label, new.display_name, new.first_words))
  execute function session_named();
create or replace trigger session_unnamed after delete on sessions
  for each row execute function session_unnamed();
create or replace trigger message_texts_gone after delete on messages referencing old table as gone
  for each statement execute function message_texts_gone();
`;

export const SEARCH = {
  sqlite: { tables: SQLITE_TABLES, triggers: SQLITE_TRIGGERS },
  postgres: { tables: POSTGRES_TABLES, triggers: POSTGRES_TRIGGERS },
};
