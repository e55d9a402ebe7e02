// Defines the table of the metadata that clients give their conversations.

import { id, table, text } from "../../store/schema/definition.ts";

export const OPENAI_TABLES = {
  /** The metadata of a conversation, if it has any. */
  conversation_metadata: table(
    { session_id: id, metadata_json: text },
    { key: ["session_id"], removed: { of: "session_id" } },
  ),
};
