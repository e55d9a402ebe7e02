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
  /** There are messages before this page. */
  readonly older: boolean;
  /** There are messages behind this page. */
  readonly newer: boolean;
}

/** Where a page begins or ends. Neither: at the newest message. */
interface InboxRange {
  /** A message id: only what came after it. */
  readonly after?: string;
  /** A message id: only what came before it. */
  readonly before?: string;
}

/** Reads the newest `limit` messages, the last ones before `before`, or the first ones behind `after`. */
export async function readInbox(
  db: Db,
  wanted: { readonly sessionId: string; readonly limit: number } & InboxRange,
): Promise<Result<InboxPage>> {
  const { sessionId, limit, after, before } = wanted;
  const written = db.selectFrom("messages").where("session_id", "=", sessionId).where("role", "=", "user");
  const page = written.select(["id", "role", "entry_json", "created_at"]).limit(limit + 1);
  const at = after ?? before;
  if (at === undefined) {
    const rows = await page.orderBy("seq", "desc").execute();
    const messages = rows.slice(0, limit).map(readMessage).reverse();
    return ok({ messages, older: rows.length > limit, newer: false });
  }
  const row = await db
    .selectFrom("messages")
    .select(["seq", "session_id"])
    .where("id", "=", at)
    .executeTakeFirst();
  if (row?.session_id !== sessionId) {
    return fail("message_not_found", `No message ${JSON.stringify(at)} in this inbox.`, {
      hint: "Use nextAfter or nextBefore of an earlier answer, or leave both out for the newest messages.",
    });
  }
  const forward = after !== undefined;
  const rows = await page
    .where("seq", forward ? ">" : "<", row.seq)
    .orderBy("seq", forward ? "asc" : "desc")
    .execute();
  const beyond = await written
    .select("id")
    .where("seq", forward ? "<=" : ">=", row.seq)
    .limit(1)
    .executeTakeFirst();
  const messages = rows.slice(0, limit).map(readMessage);
  const ahead = rows.length > limit;
  const behind = beyond !== undefined;
  return ok(
    forward
      ? { messages, older: behind, newer: ahead }
      : { messages: messages.reverse(), older: ahead, newer: behind },
  );
}
