// Declares the columns of the tables of devices.

/** Paired devices, with their last connection. */
export interface NodeTable {
  id: string;
  name: string;
  platform: string;
  version: string;
  /** Raw public key in base64url. */
  public_key: string;
  caps_json: string;
  commands_json: string;
  agent_id: string | null;
  created_by: string | null;
  paired_at: number;
  last_seen_at: number | null;
  /** Process that holds the connection. That process may have died. */
  owner: string | null;
  conn_id: string | null;
  connected_at: number | null;
}

/** Pending requests for pairing a device. */
export interface NodeRequestTable {
  node_id: string;
  request_id: string;
  code: string;
  name: string;
  platform: string;
  version: string;
  public_key: string;
  caps_json: string;
  commands_json: string;
  remote: string;
  created_at: number;
  asked_by: string | null;
}

/** Devices that have a token for a role. */
export interface DeviceTokenTable {
  device_id: string;
  role: "operator" | "node";
  series: string;
  /** Gateway token from which the device's newest token was derived. */
  token_id: string;
  name: string;
  platform: string;
  created_at: number;
  used_at: number;
  expires_at: number;
}
