// Reads a transcript in pages, in both directions, with the runs that wrote it.
// The bytes of a page are limited; messages that do not fit begin the next page.
// Credentials are redacted everywhere, also in the errors of runs and in pending texts (I14).
// A message does not reveal its source session to a reader who may not see that session (I9).

import { resolveSession } from "../../access/resolve.ts";
import { createGate } from "../../access/token.ts";
import type { ListedRow } from "../../contract/methods/sessions.ts";
import type { HistoryNow, QueuedRun } from "../../contract/methods/talk.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { forkOrigin } from "../../core/fork-key.ts";
import { shownMessage, shownProvenance } from "../../core/message-source.ts";
import { optional } from "../../core/optional.ts";
import { hasScope } from "../../core/rules/scopes.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { RunFacts, RunRow } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { findAgent, thinkingOf } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { cutHistory, type HistoryLimits } from "../../core/text/history-cut.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { freeName } from "../../flows/session/open.ts";
import { contentOfFile, fileOfTranscript } from "../../store/queries/channels/sent-files.ts";
import { factsOfLane, factsOfRuns, type LaneFacts } from "../../store/queries/runs/run-facts.ts";
import { hadTranscript } from "../../store/queries/sessions/earlier-conversations.ts";
import { activityOf, getSession, sessionsWith } from "../../store/queries/sessions/sessions.ts";
import {
  compactionsOf,
  type HistoryPage,
  type HistoryWanted,
  readHistory,
} from "../../store/queries/transcripts/transcripts.ts";
import type { CallContext, Methods } from "../call.ts";
import { labelsOfMessages } from "./rights/step-labels.ts";
import { listedRows } from "./session-row.ts";

const HISTORY_LIMIT_DEFAULT = 200;
/** Maximum bytes of one answer; a client gets the rest with the next page. */
const HISTORY_MAX_BYTES = 4 * 1024 * 1024;
const TEXT_MAX_CHARS = 1024 * 1024;
/** Maximum characters of one part of a picture or file. */
const IMAGE_PART_CHARS = 2 * 1024 * 1024;
/** Maximum characters of a message that waits in the lane. */
const WAITING_TEXT_MAX_CHARS = 4_000;

type Params = ParamsOf<"chat.history">;

/**
 * Redacts a page and cuts it to the limit. A page that was read forwards keeps its oldest messages; every
 * other page keeps its newest.
 */
async function fitPage(
  page: HistoryPage,
  limits: Pick<HistoryLimits, "maxBytes"> & { readonly keep: "newest" | "oldest" },
  redactor: Redactor,
): Promise<HistoryPage> {
  const { keep } = limits;
  const cut = await cutHistory(page.messages, { maxTextChars: TEXT_MAX_CHARS, ...limits }, redactor);
  const { messages, droppedMessages } = cut;
  const dropped = droppedMessages > 0;
  const nextBefore = dropped && keep === "newest" ? messages[0]?.id : page.nextBefore;
  const nextAfter = dropped && keep === "oldest" ? messages.at(-1)?.id : page.nextAfter;
  return {
    messages,
    runIds: page.runIds,
    ...optional({ nextBefore, nextAfter }),
  };
}

async function readFitted(
  ctx: CallContext,
  wanted: Omit<HistoryWanted, "includeTools">,
  maxBytes = HISTORY_MAX_BYTES,
): Promise<Result<HistoryPage>> {
  const { redactor } = ctx.deps.world;
  const page = await readHistory(ctx.access.db, { ...wanted, pace: redactor.pace(), includeTools: true });
  const onward = wanted.after !== undefined || wanted.from !== undefined;
  const keep = onward ? "oldest" : "newest";
  return page.ok ? ok(await fitPage(page.value, { keep, maxBytes }, redactor)) : page;
}

/** Returns a page with the given message near the middle: earlier messages, the given one, and later ones. */
async function readAround(
  ctx: CallContext,
  { sessionId, limit, around }: { sessionId: string; limit: number; around: string },
): Promise<Result<HistoryPage>> {
  const half = HISTORY_MAX_BYTES / 2;
  const newer = await readFitted(ctx, { sessionId, limit: Math.ceil(limit / 2), from: around }, half);
  if (!newer.ok || limit < 2 || newer.value.nextBefore === undefined) return newer;
  const rest = { sessionId, limit: Math.floor(limit / 2), before: newer.value.nextBefore };
  const older = await readFitted(ctx, rest, half);
  if (!older.ok) return older;
  const { nextBefore } = older.value;
  const { nextAfter } = newer.value;
  return ok({
    messages: [...older.value.messages, ...newer.value.messages],
    runIds: new Map([...older.value.runIds, ...newer.value.runIds]),
    ...optional({ nextBefore, nextAfter }),
  });
}

async function readPage(ctx: CallContext, sessionId: string, params: Params): Promise<Result<HistoryPage>> {
  const { limit = HISTORY_LIMIT_DEFAULT, before, after, around } = params;
  if ([before, after, around].filter((id) => id !== undefined).length > 1) {
    return fail("invalid_argument", "give at most one of before, after and around");
  }
  if (around !== undefined) return readAround(ctx, { sessionId, limit, around });
  return readFitted(ctx, {
    sessionId,
    limit,
    ...optional({ before, after }),
  });
}

function runRow({ runId: _, error, ...facts }: RunFacts, redactor: Redactor): RunRow {
  return { ...facts, ...(error === undefined ? {} : { error: redactor.mask(error) }) };
}

async function readNow(ctx: CallContext, session: Session, lane: readonly LaneFacts[]): Promise<HistoryNow> {
  const { db, settings } = ctx.access;
  const sees = createGate(settings, ctx.caller, "list");
  const activity = (await activityOf(db, [session.key])).get(session.key);
  const row = { session, ...(activity ?? { state: "idle" as const, queuedRuns: 0 }) };
  const [shown] = await listedRows(ctx, [row], { includeChildren: true });
  return {
    session: shown as ListedRow,
    queue: lane
      .filter(({ state }) => state === "queued")
      .map(({ runId, input }): QueuedRun => {
        if (input === undefined) return { runId };
        const { redactor } = ctx.deps.world;
        const { provenance, senderName, steer } = input;
        return {
          runId,
          text: redactor.beginning(input.text, WAITING_TEXT_MAX_CHARS).text,
          ...(provenance === undefined ? {} : { provenance: shownProvenance(provenance, sees) }),
          ...(senderName === undefined ? {} : { senderName: redactor.mask(senderName) }),
          ...(steer === undefined ? {} : { steer }),
        };
      }),
  };
}

/** Returns the data of `includeRuns`: the runs of the page and, on the newest page, the pending runs. */
async function readRuns(ctx: CallContext, session: Session, page: HistoryPage, after: string | undefined) {
  const { db } = ctx.access;
  const inForce = (await getSession(db, session.key))?.sessionId === session.sessionId;
  const atEnd = inForce && page.nextAfter === undefined;
  const lane = atEnd ? await factsOfLane(db, session.key) : [];
  const known = new Set(lane.map(({ runId }) => runId));
  // Includes the run of `after`, the last message that the client has: that run may have ended without adding
  // a message.
  const wanted = [after ?? "", ...page.messages.map(({ id }) => id)].map((id) => page.runIds.get(id));
  const others = [...new Set(wanted)].filter((id) => id !== undefined && !known.has(id)) as string[];
  const found = await factsOfRuns(db, others);
  // In a fork, leave out unfinished runs: they belong to the session that it was forked from, and are active
  // only there.
  const shown =
    forkOrigin(session.key) === undefined ? found : found.filter((run) => run.endedAt !== undefined);
  const facts = [...shown, ...lane.map(({ input: _, ...run }) => run)];
  const labels = await labelsOfMessages(ctx, session, page);
  const all = await compactionsOf(db, session);
  const compactions = page.messages.flatMap(({ id }) => {
    const at = all.get(id);
    return at === undefined ? [] : [[id, at] as const];
  });
  return {
    messages: page.messages.map((message) => {
      const runId = page.runIds.get(message.id);
      return runId === undefined ? message : { ...message, runId };
    }),
    ...(compactions.length === 0 ? {} : { compactions: Object.fromEntries(compactions) }),
    ...optional({ labels }),
    runs: Object.fromEntries(facts.map((run) => [run.runId, runRow(run, ctx.deps.world.redactor)])),
    ...(atEnd ? { now: await readNow(ctx, session, lane) } : {}),
  };
}

/** Returns the session as it was in an earlier conversation, found by that conversation's id. */
async function conversationOf(
  ctx: CallContext,
  session: Session,
  wanted: string | undefined,
): Promise<Result<Session>> {
  const sessionId = wanted?.trim().toLowerCase() ?? session.sessionId;
  if (sessionId === session.sessionId) return ok(session);
  const { db } = ctx.access;
  if (await hadTranscript(db, session.key, sessionId)) {
    const [earlier] = await sessionsWith(db, [sessionId]);
    const { labels: _, ...other } = session;
    return ok({ ...other, sessionId, ...optional({ labels: earlier?.labels }) });
  }
  const shown = quoted(sessionId, 64);
  return fail("session_not_found", `session ${session.key} has no conversation ${shown}`, {
    hint: "sessions.earlier lists the conversations from before its resets.",
  });
}

async function history(ctx: CallContext, params: Params): Promise<Result<PayloadOf<"chat.history">>> {
  const found = await resolveSession(ctx.access, ctx.viewer, "read", { sessionKey: params.sessionKey });
  if (!found.ok) {
    // A conversation that the reader's first message would start has an empty history.
    const { settings } = ctx.deps;
    const free =
      found.code === "session_not_found" ? freeName(settings, ctx.viewer, params.sessionKey) : undefined;
    if (free === undefined || !hasScope(ctx.caller.scopes, "operator.write")) return found;
    const agent = findAgent(settings, free.agentId);
    return agent === undefined
      ? found
      : ok({ sessionKey: free.key, messages: [], thinkingLevel: agent.thinking });
  }
  const chosen = await conversationOf(ctx, found.value, params.sessionId);
  if (!chosen.ok) return chosen;
  const session = chosen.value;
  const read = await readPage(ctx, session.sessionId, params);
  if (!read.ok) return read;
  const sees = createGate(ctx.deps.settings, ctx.caller, "list");
  const page = { ...read.value, messages: read.value.messages.map((one) => shownMessage(one, sees)) };
  const { messages, nextBefore, nextAfter } = page;
  const instructions = session.instructions && ctx.deps.world.redactor.mask(session.instructions);
  return ok({
    sessionKey: session.key,
    sessionId: session.sessionId,
    messages,
    thinkingLevel: thinkingOf(ctx.deps.settings, session),
    ...optional({ nextBefore, nextAfter, instructions }),
    ...(params.includeRuns === true ? await readRuns(ctx, session, page, params.after) : {}),
  });
}

async function image(
  ctx: CallContext,
  { sessionKey, messageId, index, sessionId, offset = 0 }: ParamsOf<"chat.image">,
): Promise<Result<PayloadOf<"chat.image">>> {
  const found = await resolveSession(ctx.access, ctx.viewer, "read", { sessionKey });
  if (!found.ok) return found;
  const session = await conversationOf(ctx, found.value, sessionId);
  if (!session.ok) return session;
  const pace = ctx.deps.world.redactor.pace();
  const wanted = { sessionId: session.value.sessionId, limit: 1, from: messageId, includeTools: true, pace };
  const page = await readHistory(ctx.access.db, wanted);
  if (!page.ok) return page;
  const block = page.value.messages[0]?.content[index];
  if (block?.type === "image") {
    const end = offset + IMAGE_PART_CHARS;
    const content = block.data.slice(offset, end);
    return ok({ mimeType: block.mimeType, content, ...(end < block.data.length ? { nextOffset: end } : {}) });
  }
  return fail("message_not_found", `message ${quoted(messageId, 64)} has no picture at ${index}`);
}

async function sentFile(
  ctx: CallContext,
  { sessionKey, fileId, sessionId, offset = 0 }: ParamsOf<"chat.file">,
): Promise<Result<PayloadOf<"chat.file">>> {
  const found = await resolveSession(ctx.access, ctx.viewer, "read", { sessionKey });
  if (!found.ok) return found;
  const session = await conversationOf(ctx, found.value, sessionId);
  if (!session.ok) return session;
  const { db } = ctx.access;
  const file = await fileOfTranscript(db, fileId, session.value.sessionId);
  const content = file && (await contentOfFile(db, fileId, { offset, chars: IMAGE_PART_CHARS }));
  if (file === undefined || content === undefined)
    return fail("file_not_found", `this conversation has no file ${quoted(fileId, 200)}`);
  const { name, mimeType, bytes } = file;
  const end = offset + IMAGE_PART_CHARS;
  const isLonger = end < Math.ceil(bytes / 3) * 4;
  return ok({ name, mimeType, bytes, content, ...(isLonger ? { nextOffset: end } : {}) });
}

export const historyMethods: Methods<"chat.history" | "chat.startup" | "chat.image" | "chat.file"> = {
  "chat.history": { handle: history },
  "chat.startup": { handle: history },
  "chat.image": { handle: image },
  "chat.file": { handle: sentFile },
};
