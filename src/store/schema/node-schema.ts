// Defines the tables of paired devices for both databases. The texts are part of the migrations: never edit
// them after a release.

import { POSTGRES_TEXT as T } from "../sql.ts";

/** Schema for the embedded database. */
export const NODES = `
create table nodes (
  id text primary key,
  name text not null,
  platform text not null,
  version text not null,
  public_key text not null,
  caps_json text not null,
  commands_json text not null,
  agent_id text,
  paired_at integer not null,
  last_seen_at integer,
  owner text,
  conn_id text,
  connected_at integer
) strict, without rowid;

create table node_requests (
  node_id text primary key,
  request_id text not null unique,
  code text not null unique,
  name text not null,
  platform text not null,
  version text not null,
  public_key text not null,
  caps_json text not null,
  commands_json text not null,
  remote text not null,
  created_at integer not null
) strict, without rowid;
`;

/** Schema for PostgreSQL. */
export const NODES_ON_POSTGRES = `
create table nodes (
  id ${T} primary key,
  name ${T} not null,
  platform ${T} not null,
  version ${T} not null,
  public_key ${T} not null,
  caps_json ${T} not null,
  commands_json ${T} not null,
  agent_id ${T},
  paired_at bigint not null,
  last_seen_at bigint,
  owner ${T},
  conn_id ${T},
  connected_at bigint
);

create table node_requests (
  node_id ${T} primary key,
  request_id ${T} not null unique,
  code ${T} not null unique,
  name ${T} not null,
  platform ${T} not null,
  version ${T} not null,
  public_key ${T} not null,
  caps_json ${T} not null,
  commands_json ${T} not null,
  remote ${T} not null,
  created_at bigint not null
);
`;

/** Id of the token whose rights the paired device has (triggers/creator.ts). */
export const NODE_CREATORS = "alter table nodes add column created_by text;";
export const NODE_CREATORS_ON_POSTGRES = `alter table nodes add column created_by ${T};`;

/** Id of the token with which the device asked. Null: the row is of an earlier version. */
export const nodeAskers = (text: string): string => `alter table node_requests add column asked_by ${text};`;

/** Table of devices that have a token of their own. */
export const DEVICE_TOKENS = `
create table device_tokens (
  device_id text not null,
  role text not null,
  series text not null,
  token_id text not null,
  name text not null,
  platform text not null,
  created_at integer not null,
  used_at integer not null,
  expires_at integer not null,
  primary key (device_id, role)
) strict, without rowid;
`;

/** The same table for PostgreSQL. */
export const DEVICE_TOKENS_ON_POSTGRES = `
create table device_tokens (
  device_id ${T} not null,
  role ${T} not null,
  series ${T} not null,
  token_id ${T} not null,
  name ${T} not null,
  platform ${T} not null,
  created_at bigint not null,
  used_at bigint not null,
  expires_at bigint not null,
  primary key (device_id, role)
);
`;
