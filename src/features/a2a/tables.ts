// Defines the tables of addresses that A2A clients name, of peers, and of the keys of this gateway.

import { id, integer, nullable, table, unique } from "../../store/schema/definition.ts";

/** Time for which an address is kept. */
const KEPT_MS = 30 * 86_400_000;

export const A2A_TABLES = {
  /** An address that an A2A client wants to have notified when a run ends. */
  push_configs: table(
    {
      run_id: id,
      id,
      url: id,
      token: id,
      scheme: id,
      credentials: id,
      created_at: integer,
    },
    {
      key: ["run_id", "id"],
      hasRowid: true,
      old: (now) => `created_at < ${now - KEPT_MS} and not exists (
        select 1 from runs where runs.run_id = push_configs.run_id and ended_at is null)`,
      isUnseen: true,
    },
  ),

  /** A private key that all processes of the store use. */
  gateway_keys: table(
    {
      name: id,
      /** The private key as a JSON Web Key. */
      key_json: id,
      created_at: integer,
    },
    { key: ["name"], hasRowid: true },
  ),

  /** Another gateway that is a peer, or an invitation to become one. */
  peers: table(
    {
      name: id,
      /** Null: the peer cannot be reached from here. */
      url: nullable(id),
      /** Public key as a JSON Web Key. Null: the invitation was not used yet. */
      key_json: nullable(id),
      key_id: nullable(unique(id)),
      /** Secret of the pairing code. */
      code_key: nullable(id),
      code_expires_at: nullable(integer),
      exposes_json: id,
      offers_json: id,
      created_at: integer,
    },
    { key: ["name"] },
  ),
};
