// Owns reading what others wrote into a session: the messages that wait for a client without a model.
// IB1: a page is in the order in which the messages came; nothing is marked by reading it, so that a reader
//      that fails has lost nothing.

import { fail, ok, type Result } from "../core/errors.ts";
import type { Message } from "../core/message.ts";
import type { Db } from "./sql.ts";
import { readMessage } from "./stored-entry.ts";

export interface InboxPage {
  /** Oldest first. */
  readonly messages: Message[];
  /** With `after`: there are newer ones. Without it: there are older ones. */
  readonly more: boolean;
}

/** What others wrote: the newest `limit` messages, or the first `limit` behind the message `after`. */
export async function readInbox(
  db: Db,
  wanted: { readonly sessionId: string; readonly limit: number; readonly after?: string },
): Promise<Result<InboxPage>> {
  const { sessionId, limit, after } = wanted;
  const query = db
    .selectFrom("messages")
    .select(["id", "role", "entry_json", "created_at"])
    .where("session_id", "=", sessionId)
    .where("role", "=", "user")
    .limit(limit + 1);
  if (after === undefined) {
    const rows = await query.orderBy("seq", "desc").execute();
    return ok({ messages: rows.slice(0, limit).map(readMessage).reverse(), more: rows.length > limit });
  }
  const row = await db
    .selectFrom("messages")
    .select(["seq", "session_id"])
    .where("id", "=", after)
    .executeTakeFirst();
  if (row?.session_id !== sessionId) {
    return fail("message_not_found", `No message ${JSON.stringify(after)} in this inbox.`, {
      hint: "Use nextAfter of an earlier answer, or leave `after` out for the newest messages.",
    });
  }
  const rows = await query.where("seq", ">", row.seq).orderBy("seq").execute();
  return ok({ messages: rows.slice(0, limit).map(readMessage), more: rows.length > limit });
}
