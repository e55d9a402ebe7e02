// Reads the inbox of a session that an outside program serves: the messages that wait for the program. An
// inbox mark records whether a message was read, answered or expired. Pages are in order of arrival.

import { optional } from "../../../core/optional.ts";
import { fail, ok, type Result } from "../../../core/shapes/errors.ts";
import type { Message } from "../../../core/shapes/message.ts";
import type { InboxMark } from "../../../core/shapes/run.ts";
import type { Db } from "../../sql.ts";
import { marksOf } from "../runs/inbox-marks.ts";
import { readMessage } from "../transcripts/stored-entry.ts";

export interface InboxEntry {
  readonly message: Message;
  readonly runId: string;
  /** Absent for a message that an older version of Parley accepted. */
  readonly mark?: InboxMark;
}

export interface InboxPage {
  /** The messages of the page, oldest first. */
  readonly entries: InboxEntry[];
  /** True if there are older messages before this page. */
  readonly older: boolean;
  /** True if there are newer messages after this page. */
  readonly newer: boolean;
}

/**
 * Reads `limit` messages: the first ones after the message with the id `after`, the last ones before the
 * message `before`, or the newest.
 */
export async function readInbox(
  db: Db,
  wanted: {
    readonly sessionId: string;
    readonly limit: number;
    readonly after?: string;
    readonly before?: string;
  },
): Promise<Result<InboxPage>> {
  const { sessionId, limit, after, before } = wanted;
  const written = db.selectFrom("messages").where("session_id", "=", sessionId).where("role", "=", "user");
  const at = after ?? before;
  const start =
    at === undefined ? undefined : await written.select("seq").where("id", "=", at).executeTakeFirst();
  if (at !== undefined && start === undefined) {
    return fail("message_not_found", `No message ${JSON.stringify(at)} in this inbox.`, {
      hint: "Use nextAfter or nextBefore of an earlier answer, or omit both to get the newest messages.",
    });
  }
  const isForward = after !== undefined;
  const page = written.select(["id", "run_id", "role", "entry_json", "created_at"]).limit(limit + 1);
  const inOrder = page.orderBy("seq", isForward ? "asc" : "desc");
  const further = start === undefined ? inOrder : inOrder.where("seq", isForward ? ">" : "<", start.seq);
  const rows = await further.execute();
  const marks = await marksOf(
    db,
    rows.map(({ run_id }) => run_id ?? ""),
  );
  const entries = rows.slice(0, limit).map((row): InboxEntry => {
    const runId = row.run_id ?? "";
    return { message: readMessage(row), runId, ...optional({ mark: marks.get(runId) }) };
  });
  const hasMore = rows.length > limit;
  // The message at which the page starts is itself before or after the page.
  const isInside = start !== undefined;
  return ok(
    isForward
      ? { entries, older: isInside, newer: hasMore }
      : { entries: entries.reverse(), older: hasMore, newer: isInside },
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
    .where((eb) => eb.and({ session_id: sessionId, role: "user" }))
    .execute();
  return new Map(rows.map(({ id, run_id }) => [id, run_id ?? ""]));
}
