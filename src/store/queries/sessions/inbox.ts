// Reads the inbox of a session that an outside program serves: the messages that wait for the program. An
// inbox mark records whether a message was read, answered or expired. Pages are in order of arrival.

import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { Message } from "../../../core/shapes/message.ts";
import type { Db } from "../../sql.ts";
import { readMessage } from "../transcripts/stored-entry.ts";

/** A message of an inbox. */
export interface InboxEntry {
  readonly message: Message;
  /** Run that delivered the message. */
  readonly runId: string;
}

export interface InboxPage {
  /** The messages of the page, oldest first. */
  readonly entries: InboxEntry[];
  /** True if there are older messages before this page. */
  readonly older: boolean;
  /** True if there are newer messages after this page. */
  readonly newer: boolean;
}

type Row = Parameters<typeof readMessage>[0] & { readonly run_id: string | null };

const entryOf = (row: Row): InboxEntry => ({ message: readMessage(row), runId: row.run_id ?? "" });

/** Range of a page. Without `after` and `before`, the newest messages. */
interface InboxRange {
  /** Only messages that follow the message with the id `after`. */
  readonly after?: string;
  /** Only messages that precede the message with the id `before`. */
  readonly before?: string;
}

/** Reads the newest `limit` messages, the last ones before `before`, or the first ones after `after`. */
export async function readInbox(
  db: Db,
  wanted: { readonly sessionId: string; readonly limit: number } & InboxRange,
): Promise<Result<InboxPage>> {
  const { sessionId, limit, after, before } = wanted;
  const written = db.selectFrom("messages").where("session_id", "=", sessionId).where("role", "=", "user");
  const page = written.select(["id", "run_id", "role", "entry_json", "created_at"]).limit(limit + 1);
  const at = after ?? before;
  if (at === undefined) {
    const rows = await page.orderBy("seq", "desc").execute();
    const entries = rows.slice(0, limit).map(entryOf).reverse();
    return ok({ entries, older: rows.length > limit, newer: false });
  }
  const row = await db
    .selectFrom("messages")
    .select(["seq", "session_id"])
    .where("id", "=", at)
    .executeTakeFirst();
  if (row?.session_id !== sessionId) {
    return fail("message_not_found", `No message ${JSON.stringify(at)} in this inbox.`, {
      hint: "Use nextAfter or nextBefore of an earlier answer, or omit both to get the newest messages.",
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
  const entries = rows.slice(0, limit).map(entryOf);
  const ahead = rows.length > limit;
  const behind = beyond !== undefined;
  return ok(
    forward
      ? { entries, older: behind, newer: ahead }
      : { entries: entries.reverse(), older: ahead, newer: behind },
  );
}

/**
 * Returns the runs that delivered these messages, by message id. Messages that are not in the inbox have no
 * entry.
 */
export async function runsOfInbox(
  db: Db,
  sessionId: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom("messages")
    .select(["id", "run_id"])
    .where("id", "in", ids)
    .where("session_id", "=", sessionId)
    .where("role", "=", "user")
    .execute();
  return new Map(rows.map(({ id, run_id }) => [id, run_id ?? ""]));
}
