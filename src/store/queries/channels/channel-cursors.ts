// Owns the position up to which each channel account has been read, for platforms that do not store it.

import { type RecordOf, recordsOf } from "../../records.ts";
import type { Db, Tx } from "../../sql.ts";

type Cursor = RecordOf<"channel_cursors">;
/** Identifies a stored position of an account. */
type CursorId = Omit<Cursor, "value">;

const CURSORS = recordsOf<Cursor>()("channel_cursors", {
  key: ["channel", "account_id", "name"],
  columns: ["value"],
});

export const getCursor = async (db: Db, id: CursorId) => (await CURSORS.find(db, id))?.value;

export const putCursor = (tx: Tx, id: CursorId, value: string) => CURSORS.put(tx, { ...id, value });
