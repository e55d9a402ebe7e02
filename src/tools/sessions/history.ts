// Implements the tool `sessions_history`, which returns one page of a visible session's transcript. The
// answer is redacted, then cut; the stored transcript does not change (I14).

import { shownKey } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { HISTORY_LIMIT } from "../../contract/tools/sessions.ts";
import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { cutHistory } from "../../core/text/history-cut.ts";
import { readHistory } from "../../store/queries/transcripts/transcripts.ts";
import { countLimit, textLimit } from "../arguments.ts";
import { type ReadingContext, type Tool, tool } from "../tool.ts";

const MESSAGE_ID_CHARS_MAX = 200;

export const sessionsHistory: Tool<ReadingContext> = tool("sessions_history", {
  limits: {
    sessionKey: textLimit(KEY_CHARS_MAX),
    limit: countLimit(HISTORY_LIMIT),
    before: textLimit(MESSAGE_ID_CHARS_MAX),
  },
  async execute(ctx, { sessionKey, limit, before, includeTools = false }) {
    const found = await resolveSession(ctx, ctx.viewer, "read", { sessionKey });
    if (!found.ok) return found;
    const session = found.value;
    const page = await readHistory(ctx.db, {
      sessionId: session.sessionId,
      pace: ctx.engine.redactor.pace(),
      limit,
      includeTools,
      ...optional({ before }),
    });
    if (!page.ok) return page;
    const { maxTextChars, maxBytes } = ctx.settings.tools.history;
    const cut = await cutHistory(page.value.messages, { maxTextChars, maxBytes }, ctx.engine.redactor);
    const oldest = cut.messages[0]?.id;
    const more = page.value.nextBefore !== undefined || cut.droppedMessages > 0;
    return ok({
      sessionKey: shownKey(ctx, ctx.viewer, session.key),
      sessionId: session.sessionId,
      messages: cut.messages,
      ...(more && oldest !== undefined ? { nextBefore: oldest } : {}),
      truncated: cut.truncated,
      droppedMessages: cut.droppedMessages,
      bytes: cut.bytes,
    });
  },
});
