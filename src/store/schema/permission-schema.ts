// Defines the table of agents' permission requests for both databases. The texts are part of the migrations:
// never edit them after a release.

import { POSTGRES_TEXT as T } from "../sql.ts";

export const PERMISSIONS = `
create table permissions (
  id text primary key,
  session_key text not null,
  agent_id text not null,
  run_id text not null,
  attempt integer not null,
  title text not null,
  kind text,
  detail text,
  asked_at integer not null,
  expires_at integer not null,
  decision text,
  decided_at integer,
  decided_by text
) strict, without rowid;
create index permissions_of_run on permissions (run_id);
`;

/** The same table for PostgreSQL. */
export const PERMISSIONS_ON_POSTGRES = `
create table permissions (
  id ${T} primary key,
  session_key ${T} not null,
  agent_id ${T} not null,
  run_id ${T} not null,
  attempt bigint not null,
  title ${T} not null,
  kind ${T},
  detail ${T},
  asked_at bigint not null,
  expires_at bigint not null,
  decision ${T},
  decided_at bigint,
  decided_by ${T}
);
create index permissions_of_run on permissions (run_id);
`;
