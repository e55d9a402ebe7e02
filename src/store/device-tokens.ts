// Owns the table of devices that have been given a token: one row for each device and role.
// DT1: without its row a device token is not good. A row that was deleted and made again has another series,
//      so an earlier token stays refused.

import type { Selectable } from "kysely";
import { held } from "./locks.ts";
import type { Db, Tx } from "./sql.ts";
import type { DeviceTokenTable } from "./tables.ts";

/** Devices of one gateway token; the one that was away longest is forgotten first. */
const DEVICES_OF_TOKEN_MAX = 200;

export interface DeviceTokenId {
  readonly deviceId: string;
  readonly role: "operator" | "node";
}

export interface DeviceTokenRow extends DeviceTokenId {
  /** The same in all tokens that the device was given since its row was made. */
  readonly series: string;
  /** `tokenId` of the gateway token that the newest was made from. */
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

/** The series of a device's tokens, held until the transaction ends. */
export async function holdSeries(tx: Tx, { deviceId, role }: DeviceTokenId): Promise<string | undefined> {
  const query = tx
    .selectFrom("device_tokens")
    .select("series")
    .where("device_id", "=", deviceId)
    .where("role", "=", role);
  return (await held(tx, query).executeTakeFirst())?.series;
}

/** Notes that a device is given a token, and returns its series: that of the row, if there is one. */
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

/** Forgets the devices whose tokens have expired, and those that a gateway token has too many of. */
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

/** The devices whose tokens have not expired, the last seen first. */
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

/** Returns the number of rows that there were. No role: those of every role. */
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
