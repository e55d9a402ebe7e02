// Owns the table of devices that have a token: one row per device and role. If its row is missing, a device
// token is invalid. Each new row gets a new series id, and each token names its series. So if a row was
// deleted and created again, earlier tokens stay invalid.

import type { Selectable } from "kysely";
import { held } from "../locks.ts";
import type { DeviceTokenTable } from "../schema/tables.ts";
import type { Db, Tx } from "../sql.ts";

/** Maximum number of devices per gateway token. The device that was used least recently is deleted first. */
const DEVICES_OF_TOKEN_MAX = 200;

export interface DeviceTokenId {
  readonly deviceId: string;
  readonly role: "operator" | "node";
}

export interface DeviceTokenRow extends DeviceTokenId {
  /** Id that all tokens of the device contain. It changes only if the row is deleted and created again. */
  readonly series: string;
  /** `tokenId` of the gateway token from which the newest device token was derived. */
  readonly tokenId: string;
  readonly name: string;
  readonly platform: string;
  readonly createdAt: number;
  readonly usedAt: number;
  readonly expiresAt: number;
}

function toRow(row: Selectable<DeviceTokenTable>): DeviceTokenRow {
  return {
    deviceId: row.device_id,
    role: row.role,
    series: row.series,
    tokenId: row.token_id,
    name: row.name,
    platform: row.platform,
    createdAt: row.created_at,
    usedAt: row.used_at,
    expiresAt: row.expires_at,
  };
}

/** Returns the series of a device's tokens, and locks the row until the transaction ends. */
export async function holdSeries(tx: Tx, { deviceId, role }: DeviceTokenId): Promise<string | undefined> {
  const query = tx
    .selectFrom("device_tokens")
    .select("series")
    .where("device_id", "=", deviceId)
    .where("role", "=", role);
  return (await held(tx, query).executeTakeFirst())?.series;
}

/**
 * Stores that a device receives a token. Returns the series for the token. If the row exists, its series
 * stays the same.
 */
export async function putDeviceToken(tx: Tx, row: DeviceTokenRow): Promise<string> {
  const columns = {
    token_id: row.tokenId,
    name: row.name,
    platform: row.platform,
    used_at: row.usedAt,
    expires_at: row.expiresAt,
  };
  const { deviceId, role, series, createdAt } = row;
  const kept = await tx
    .insertInto("device_tokens")
    .values({ device_id: deviceId, role, series, created_at: createdAt, ...columns })
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
export async function listDeviceTokens(db: Db, nowMs: number): Promise<DeviceTokenRow[]> {
  const rows = await db
    .selectFrom("device_tokens")
    .selectAll()
    .where("expires_at", ">", nowMs)
    .orderBy("used_at", "desc")
    .orderBy("device_id")
    .orderBy("role")
    .execute();
  return rows.map(toRow);
}

/** Deletes a device's rows for one role, or for all roles. Returns the number of deleted rows. */
export async function deleteDeviceTokens(
  tx: Tx,
  deviceId: string,
  role?: DeviceTokenRow["role"],
): Promise<number> {
  const query = tx.deleteFrom("device_tokens").where("device_id", "=", deviceId);
  const { numDeletedRows } = await (role === undefined
    ? query
    : query.where("role", "=", role)
  ).executeTakeFirst();
  return Number(numDeletedRows);
}
