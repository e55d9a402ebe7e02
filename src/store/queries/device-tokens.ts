// Owns the table of devices that have a token: one row per device and role. If its row is missing, a device
// token is invalid. Each new row gets a new series id, and each token names its series. So if a row was
// deleted and created again, earlier tokens stay invalid.

import { type RecordOf, recordsOf } from "../records.ts";
import { changesRows, type Db, type Tx } from "../sql.ts";

/** Maximum number of devices per gateway token. The device that was used least recently is deleted first. */
const DEVICES_OF_TOKEN_MAX = 200;

export type DeviceTokenRow = RecordOf<"device_tokens">;
export type DeviceTokenId = Pick<DeviceTokenRow, "deviceId" | "role">;

const DEVICES = recordsOf<DeviceTokenRow>()("device_tokens", {
  key: ["device_id", "role"],
  columns: ["series", "token_id", "name", "platform", "created_at", "used_at", "expires_at"],
});

/** Returns the series of a device's tokens, and locks the row until the transaction ends. */
export async function holdSeries(tx: Tx, { deviceId, role }: DeviceTokenId): Promise<string | undefined> {
  return (await DEVICES.hold(tx, { deviceId, role }))?.series;
}

/**
 * Stores that a device receives a token. Returns the series for the token. If the row exists, its series
 * stays the same.
 */
export async function putDeviceToken(tx: Tx, row: DeviceTokenRow): Promise<string> {
  const { tokenId, name, platform, usedAt, expiresAt } = row;
  const columns = DEVICES.columns({ tokenId, name, platform, usedAt, expiresAt });
  const kept = await tx
    .insertInto("device_tokens")
    .values(DEVICES.write(row))
    .onConflict((conflict) => conflict.columns(["device_id", "role"]).doUpdateSet(columns))
    .returning("series")
    .executeTakeFirstOrThrow();
  return kept.series;
}

/**
 * Deletes devices whose tokens have expired. If a gateway token has too many devices, also deletes those that
 * were used least recently.
 */
export async function dropDeviceTokens(tx: Tx, tokenId: string, nowMs: number): Promise<void> {
  await tx.deleteFrom("device_tokens").where("expires_at", "<=", nowMs).execute();
  const extra = await tx
    .selectFrom("device_tokens")
    .select(["device_id", "role"])
    .where("token_id", "=", tokenId)
    .orderBy("used_at", "desc")
    .orderBy("device_id")
    .orderBy("role")
    .limit(DEVICES_OF_TOKEN_MAX)
    .offset(DEVICES_OF_TOKEN_MAX)
    .execute();
  for (const { device_id: deviceId, role } of extra) await deleteDeviceTokens(tx, deviceId, role);
}

/** Lists devices with valid tokens, the last used first. */
export function listDeviceTokens(db: Db, nowMs: number): Promise<DeviceTokenRow[]> {
  const rows = DEVICES.rows(db).where("expires_at", ">", nowMs).orderBy("used_at", "desc");
  return DEVICES.all(rows.orderBy("device_id").orderBy("role"));
}

/** Deletes a device's rows for one role, or for all roles. Returns whether there were any. */
export async function deleteDeviceTokens(
  tx: Tx,
  deviceId: string,
  role?: DeviceTokenRow["role"],
): Promise<boolean> {
  const devices = tx.deleteFrom("device_tokens").where("device_id", "=", deviceId);
  return changesRows(tx, role === undefined ? devices : devices.where("role", "=", role));
}
