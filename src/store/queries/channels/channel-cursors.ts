// Owns the position up to which each channel account has been read, for platforms that do not store it.

import type { Db, Tx } from "../../sql.ts";

/** Identifies a stored position of an account. */
interface CursorId {
  readonly channel: string;
  readonly accountId: string;
  readonly name: string;
}

export async function getCursor(db: Db, { channel, accountId, name }: CursorId): Promise<string | undefined> {
  const row = await db
    .selectFrom("channel_cursors")
    .select("value")
    .where("channel", "=", channel)
    .where("account_id", "=", accountId)
    .where("name", "=", name)
    .executeTakeFirst();
  return row?.value;
}

export async function putCursor(
  tx: Tx,
  { channel, accountId, name }: CursorId,
  value: string,
): Promise<void> {
  await tx
    .insertInto("channel_cursors")
    .values({ channel, account_id: accountId, name, value })
    .onConflict((conflict) => conflict.columns(["channel", "account_id", "name"]).doUpdateSet({ value }))
    .execute();
}
