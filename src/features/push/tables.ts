// Defines the tables of the devices that are notified, and of the key with which they are.

import { id, integer, table, unique } from "../../store/schema/definition.ts";

export const PUSH_TABLES = {
  /** A browser that is told what needs its owner. */
  push_devices: table(
    {
      id,
      name: id,
      /** The address at the browser's push service. It is a secret, as the keys are. */
      endpoint: unique(id),
      /** Public key of the browser, and the secret that it shares with this gateway, in base64url. */
      p256dh: id,
      auth: id,
      created_at: integer,
      /** Id of the token whose rights the device has. */
      created_by: id,
    },
    { key: ["id"] },
  ),

  /** The private key that signs requests to push services. All processes of a store share it. */
  push_keys: table({ name: id, key_json: id, created_at: integer }, { key: ["name"] }),
};
