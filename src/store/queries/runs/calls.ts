// Reads the messages that show when the model calls and tool calls of runs began and ended.
// CL1: the texts of tool results are not read. Answers of models are read newest first, up to a total number
//      of bytes.

import { sql } from "kysely";
import type { AssistantMessage } from "../../../core/shapes/message.ts";
import { type Db, kindOf } from "../../sql.ts";
import { ENTRY_COLUMNS, readMessage } from "../transcripts/stored-entry.ts";

/** An answer of a model, or the end of a tool call. */
export type CallMessage = {
  readonly id: string;
  readonly runId: string;
  readonly at: number;
} & (
  | { readonly kind: "answer"; readonly answer: AssistantMessage }
  | { readonly kind: "result"; readonly failed: boolean }
);

const READ_AT_ONCE = 500;

/**
 * Finds `isError` without parsing the JSON. The field comes before the details of a result, and quotes inside
 * a JSON string are escaped, so the first match is the field itself.
 */
function isErrorOf(db: Db) {
  const place = (value: string) => {
    const field = `"isError":${value}`;
    return kindOf(db) === "postgres"
      ? sql<number>`strpos(entry_json, ${field})`
      : sql<number>`instr(entry_json, ${field})`;
  };
  const [yes, no] = [place("true"), place("false")];
  return sql<number>`case when role = 'toolResult' and ${yes} > 0 and (${no} = 0 or ${yes} < ${no})
    then 1 else 0 end`;
}

interface CallsWanted {
  readonly rowsMax: number;
  readonly bytesMax: number;
  /** Reads only the answers of models. */
  readonly answersOnly?: boolean;
}

/** Reads the newest answers and ends of tool calls of these runs, oldest first. */
export async function callMessagesOf(
  db: Db,
  runIds: readonly string[],
  { answersOnly, ...most }: CallsWanted,
): Promise<{ messages: CallMessage[]; truncated: boolean }> {
  if (runIds.length === 0) return { messages: [], truncated: false };
  const rows = await db
    .selectFrom("messages")
    .select(["seq", "id", "run_id", "role", "created_at", isErrorOf(db).as("failed")])
    .select(sql<number>`octet_length(entry_json)`.as("bytes"))
    .where("run_id", "in", runIds)
    .where("role", "in", answersOnly === true ? ["assistant"] : ["assistant", "toolResult"])
    .orderBy("seq", "desc")
    .limit(most.rowsMax + 1)
    .execute();
  let bytes = 0;
  const isResult = (row: { readonly role: string }): boolean => row.role === "toolResult";
  const fits = rows.slice(0, most.rowsMax).findIndex((row) => {
    bytes += isResult(row) ? 0 : row.bytes;
    return bytes > most.bytesMax;
  });
  const kept = rows.slice(0, fits < 0 ? most.rowsMax : fits).reverse();
  const wanted = kept.filter((row) => !isResult(row)).map(({ seq }) => seq);
  const answers = new Map<number, AssistantMessage>();
  for (let at = 0; at < wanted.length; at += READ_AT_ONCE) {
    const read = await db
      .selectFrom("messages")
      .select(["seq", ...ENTRY_COLUMNS])
      .where("seq", "in", wanted.slice(at, at + READ_AT_ONCE))
      .execute();
    for (const row of read) {
      const message = readMessage(row);
      if (message.role === "assistant") answers.set(row.seq, message);
    }
  }
  const messages = kept.flatMap((row): CallMessage[] => {
    const facts = { id: row.id, runId: row.run_id ?? "", at: row.created_at };
    if (isResult(row)) return [{ ...facts, kind: "result", failed: row.failed === 1 }];
    const answer = answers.get(row.seq);
    return answer === undefined ? [] : [{ ...facts, kind: "answer", answer }];
  });
  return { messages, truncated: kept.length < rows.length };
}
