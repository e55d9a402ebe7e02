// Reads the inbox of a session without a model: messages of others that wait for its client. Pages are in
// order of arrival. Reading marks nothing, so a reader that fails has lost nothing.

import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { Message } from "../../../core/shapes/message.ts";
import type { Db } from "../../sql.ts";
import { readMessage } from "../transcripts/stored-entry.ts";

export interface InboxPage {
  /** Oldest first. */
  readonly messages: Message[];
  /** Older messages precede this page. */
  readonly older: boolean;
  /** Newer messages follow this page. */
  readonly newer: boolean;
}

/** The range of a page. Neither: the newest messages. */
interface InboxRange {
  /** A message id: only messages after it. */
  readonly after?: string;
  /** A message id: only messages before it. */
  readonly before?: string;
}

/** Reads the newest `limit` messages, the last ones before `before`, or the first ones after `after`. */
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
