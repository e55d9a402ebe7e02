// Implements the tool `sessions_history`, which returns one page of a visible session's transcript. The
// answer is redacted, then cut; the stored transcript does not change (I14). A message does not name a source
// that the viewer may not see (I9).

import { shownKey, visibleAmong } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { HISTORY_LIMIT } from "../../contract/tools/sessions.ts";
import { shownMessage, sourceKeyOf } from "../../core/message-source.ts";
import { optional } from "../../core/optional.ts";
import { joinLabels, labelsKnownTo, withLabels } from "../../core/rules/labels/labels.ts";
import { ok } from "../../core/shapes/errors.ts";
import type { Message } from "../../core/shapes/message.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { cutHistory } from "../../core/text/history-cut.ts";
import { readHistory } from "../../store/queries/transcripts/transcripts.ts";
import { countLimit, textLimit } from "../arguments.ts";
import { type ReadingContext, type Tool, tool } from "../tool.ts";

const MESSAGE_ID_CHARS_MAX = 200;

/** Returns the messages without the names of sources that the viewer may not see. */
export async function withoutHiddenSources(
  ctx: ReadingContext,
  messages: readonly Message[],
): Promise<Message[]> {
  const sources = messages.flatMap((message) => sourceKeyOf(message) ?? []);
  const sees = await visibleAmong(ctx, ctx.viewer, "list", sources);
  return messages.map((message) => shownMessage(message, sees));
}

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
    const messages = await withoutHiddenSources(ctx, page.value.messages);
    const cut = await cutHistory(messages, { maxTextChars, maxBytes }, ctx.engine.redactor);
    const oldest = cut.messages[0]?.id;
    const more = page.value.nextBefore !== undefined || cut.droppedMessages > 0;
    // The shared part of a fork has the labels of its origin, which may have lost some since.
    const labels = joinLabels(page.value.labels, labelsKnownTo(ctx.settings, session));
    const answer = {
      sessionKey: shownKey(ctx, ctx.viewer, session.key),
      sessionId: session.sessionId,
      messages: cut.messages,
      ...(more && oldest !== undefined ? { nextBefore: oldest } : {}),
      truncated: cut.truncated,
      droppedMessages: cut.droppedMessages,
      bytes: cut.bytes,
    };
    return ok(withLabels(answer, labels));
  },
});
