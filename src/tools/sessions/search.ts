// Implements the tool `sessions_search`: full-text search in the transcripts of visible sessions.

import { SEARCH_LIMIT } from "../../contract/methods/sessions.ts";
import { withLabels } from "../../core/rules/labels/labels.ts";
import { badCursor, ok } from "../../core/shapes/errors.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { searchVisible } from "../../flows/session/search.ts";
import { agentIdLimit, countLimit, formLimit, textLimit } from "../arguments.ts";
import { type ReadingContext, type RunContext, type Tool, tool } from "../tool.ts";

const QUERY_CHARS_MAX = 500;
const CURSOR_CHARS_MAX = 2_000;

export const sessionsSearch: Tool<ReadingContext & Pick<RunContext, "signal">> = tool("sessions_search", {
  limits: {
    query: textLimit(QUERY_CHARS_MAX),
    sessionKey: textLimit(KEY_CHARS_MAX),
    agentId: agentIdLimit,
    limit: countLimit(SEARCH_LIMIT),
    cursor: formLimit(CURSOR_CHARS_MAX, (cursor) =>
      /^\d{1,15}$/.test(cursor) ? undefined : badCursor("this tool"),
    ),
  },
  async execute(ctx, request) {
    const { redactor, store } = ctx.engine;
    const found = await searchVisible({ ...ctx, redactor, readWorker: store.readWorker }, request);
    if (!found.ok) return found;
    const { page, labels } = found.value;
    return ok(withLabels({ count: page.hits.length, ...page }, labels));
  },
});
