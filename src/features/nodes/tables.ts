// Defines the tables of paired devices and of pairing requests.

import { id, integer, nullable, table, unique } from "../../store/schema/definition.ts";

/** The facts that a device states when it asks for pairing. */
const DEVICE = {
  name: id,
  platform: id,
  version: id,
  /** Raw public key in base64url. */
  public_key: id,
  caps_json: id,
  commands_json: id,
};

export const NODE_TABLES = {
  /** Paired devices, with their last connection. */
  nodes: table(
    {
      id,
      ...DEVICE,
      agent_id: nullable(id),
      paired_at: integer,
      last_seen_at: nullable(integer),
      /** Process that holds the connection. That process may have died. */
      owner: nullable(id),
      conn_id: nullable(id),
      connected_at: nullable(integer),
      /** Id of the token whose rights the paired device has (triggers/creator.ts). */
      created_by: nullable(id),
    },
    { key: ["id"] },
  ),

  /** Pending requests for pairing a device. */
  node_requests: table(
    {
      node_id: id,
      request_id: unique(id),
      code: unique(id),
      ...DEVICE,
      remote: id,
      created_at: integer,
      /** Id of the token with which the device asked. */
      asked_by: nullable(id),
    },
    { key: ["node_id"] },
  ),
};
