// Owns the tables of the notified devices and of the key with which they are notified.

import { generateKeyPairSync, hkdfSync, type JsonWebKey } from "node:crypto";
import { jsonOf } from "../../core/json.ts";
import type { Commit } from "../../engine/unit.ts";
import { type RecordOf, recordsOf } from "../../store/records.ts";
import type { Db, Tx } from "../../store/sql.ts";

export type PushDevice = RecordOf<"push_devices">;

const DEVICES = recordsOf<PushDevice>()("push_devices", {
  key: ["id"],
  columns: ["name", "endpoint", "p256dh", "auth", "created_at", "created_by"],
});

/** Stores a device. The same browser replaces its earlier row. */
export const putDevice = (tx: Tx, device: PushDevice) => DEVICES.put(tx, device);

export const getDevice = (db: Db, id: string) => DEVICES.find(db, { id });

/** Lists all devices, oldest first. */
export const listDevices = (db: Db) => DEVICES.all(DEVICES.rows(db).orderBy("created_at").orderBy("id"));

/** Returns false if there is no such device. */
export const deleteDevice = (tx: Tx, id: string) => DEVICES.remove(tx, { id });

const KEY_NAME = "vapid";

/** Returns the private key of this deployment. It is made when it is first needed. */
export async function pushKey(db: Db, commit: Commit): Promise<JsonWebKey> {
  const keys = db.selectFrom("push_keys").select("key_json").where("name", "=", KEY_NAME);
  const stored = await keys.executeTakeFirst();
  if (stored !== undefined) return jsonOf(stored.key_json) as JsonWebKey;
  const made = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
  await commit(async (unit) => {
    const row = { name: KEY_NAME, key_json: JSON.stringify(made), created_at: unit.now };
    const insert = unit.tx.insertInto("push_keys").values(row);
    await insert.onConflict((conflict) => conflict.column("name").doNothing()).execute();
  });
  // Another process may have stored its key first.
  return jsonOf((await keys.executeTakeFirstOrThrow()).key_json) as JsonWebKey;
}

/** Returns the secret that seals the buttons of notifications. It comes from the private key. */
export function sealingKey({ d = "" }: JsonWebKey): Buffer {
  return Buffer.from(hkdfSync("sha256", Buffer.from(d, "base64url"), "", "parley-push-answer", 32));
}
