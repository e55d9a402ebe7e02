// The tool `sessions_history`: one page of a visible session's transcript. The answer is redacted, then cut;
// the stored transcript is neither (I14).

import { shownKey } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { ok } from "../../core/shapes/errors.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { type CutHistory, cutHistory } from "../../core/text/history-cut.ts";
import { readHistory } from "../../store/queries/transcripts/transcripts.ts";
import { countLimit, textLimit } from "../arguments.ts";
import type { ReadingContext, Tool } from "../tool.ts";

const LIMIT = { fallback: 50, min: 1, max: 1_000 };
const MESSAGE_ID_CHARS_MAX = 200;

/** One page of a transcript. */
type HistoryResult = Pick<CutHistory, "messages" | "truncated" | "droppedMessages" | "bytes"> & {
  readonly sessionKey: string;
  readonly sessionId: string;
  /** The page before this one; absent: there is none. */
  readonly nextBefore?: string;
};

export const sessionsHistory: Tool<ReadingContext, HistoryResult> = {
  spec: {
    name: "sessions_history",
    description:
      "Read the transcript of a session that you can see, oldest message first. " +
      "For earlier messages, call again with `before` set to the `nextBefore` of the result.",
    parameters: {
      type: "object",
      properties: {
        sessionKey: { type: "string", description: "Key or session id, from sessions_list." },
        limit: {
          type: "number",
          description: `Maximum number of messages. Default ${LIMIT.fallback}, at most ${LIMIT.max}.`,
        },
        includeTools: { type: "boolean", description: "Include tool results. Default false." },
        before: { type: "string", description: "A message id: returns the page before it." },
      },
      required: ["sessionKey"],
    },
    parallel: true,
    idempotent: true,
  },
  limits: {
    sessionKey: textLimit(KEY_CHARS_MAX),
    limit: countLimit(LIMIT),
    before: textLimit(MESSAGE_ID_CHARS_MAX),
  },
  async execute(ctx, args) {
    const sessionKey = args.sessionKey as string;
    const found = await resolveSession(ctx, ctx.viewer, "read", { sessionKey });
    if (!found.ok) return found;
    const session = found.value;
    const page = await readHistory(ctx.db, {
      sessionId: session.sessionId,
      pace: ctx.engine.redactor.pace(),
      limit: args.limit as number,
      includeTools: args.includeTools === true,
      ...(typeof args.before === "string" ? { before: args.before } : {}),
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
};
