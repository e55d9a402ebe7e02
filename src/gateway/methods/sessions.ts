// Owns the methods about sessions: finding, creating, changing, resetting, deleting them.
// A session is looked up by key, id or label through `access/resolve.ts` only, which also checks the access.

import { resolveSession } from "../../access/resolve.ts";
import { createGate, storePathFor } from "../../access/token.ts";
import { type ListedRow, SEARCH_LIMIT, type SESSION_METHODS } from "../../contract/methods/sessions.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { badCursor, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { textOf } from "../../core/shapes/message.ts";
import type { Session } from "../../core/shapes/session.ts";
import { defaultAgent } from "../../core/shapes/settings/settings.ts";
import { sendDirect } from "../../flows/conversation/direct.ts";
import { archiveSession } from "../../flows/job/archive.ts";
import { type Forked, forkSession } from "../../flows/session/fork.ts";
import {
  COMPACT_INPUT,
  createSession,
  deleteSession,
  type LifecycleContext,
  mayCompact,
  patchSession,
  resetSession,
} from "../../flows/session/lifecycle.ts";
import { type ListedSession, type ListFilter, listVisible, visibleCounts } from "../../flows/session/list.ts";
import { createNamed } from "../../flows/session/open.ts";
import { searchVisible } from "../../flows/session/search.ts";
import { earlierConversations } from "../../store/queries/sessions/earlier-conversations.ts";
import { isSessionCursor } from "../../store/queries/sessions/session-lists.ts";
import { firstUserTexts } from "../../store/queries/transcripts/first-texts.ts";
import { hasCompaction, lastMessages } from "../../store/queries/transcripts/transcripts.ts";
import { keyOwnerOf } from "../auth.ts";
import { answerAfter, type BasicDeps, type CallContext, type Methods, onlyFresh } from "../call.ts";
import { untilEnded } from "./agent.ts";
import { listedRows, sessionRow, splitModel } from "./session-row.ts";
import type { SystemDeps } from "./system.ts";

export type SessionDeps = BasicDeps & LifecycleContext & Pick<SystemDeps, "models">;

const LIST_LIMIT_DEFAULT = 200;
const LIST_LIMIT_MAX = 1000;
const TITLE_MAX_CHARS = 60;
const PREVIEW_MAX_CHARS = 120;
const EARLIER_LIMIT_DEFAULT = 50;
const EARLIER_LIMIT_MAX = 1000;
const PREVIEW_LIMIT_DEFAULT = 12;
const PREVIEW_LIMIT_MAX = 50;
const ITEM_CHARS_DEFAULT = 240;
const ITEM_CHARS_MAX = 4_000;
const MINUTE_MS = 60_000;

function filterOf(ctx: CallContext, params: ParamsOf<"sessions.list">): ListFilter {
  const { activeMinutes, kinds, agentId, search, label, cursor } = params;
  const { spawnedBy, roots, keys, includeArchived, only } = params;
  const { settings, world } = ctx.deps;
  // The session `global` is listed only on request, unless it is the session of all chats (session.scope).
  const hideGlobal = params.includeGlobal !== true && settings.session.scope !== "global";
  return {
    limit: Math.min(params.limit ?? LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX),
    ...(hideGlobal ? { excludeKeys: ["global"] } : {}),
    ...(kinds === undefined ? {} : { kinds: kinds as ListFilter["kinds"] & object }),
    ...(agentId === undefined ? {} : { agentId: agentId.trim().toLowerCase() }),
    ...(search === undefined || search.trim() === "" ? {} : { search: search.trim() }),
    ...optional({ label, spawnedBy, roots, keys, includeArchived, cursor }),
    ...(only === "mine" ? { askedBy: ctx.caller.id } : optional({ doing: only })),
    ...(activeMinutes === undefined
      ? {}
      : { activeSinceMs: Math.max(0, world.clock.now() - activeMinutes * MINUTE_MS) }),
  };
}

/** Returns the first words of a row, if requested. */
function titleIn(ctx: CallContext, params: ParamsOf<"sessions.list">, { session }: ListedSession) {
  if (params.includeDerivedTitles !== true || session.firstWords === undefined) return undefined;
  return ctx.deps.world.redactor.line(session.firstWords, TITLE_MAX_CHARS);
}

/** Returns the last message of a row, if requested. */
async function lastOf(ctx: CallContext, params: ParamsOf<"sessions.list">, { session }: ListedSession) {
  if (params.includeLastMessage !== true) return {};
  const [last] = await lastMessages(ctx.access.db, session.sessionId, 1, { includeTools: false });
  if (last === undefined) return {};
  return { lastMessagePreview: ctx.deps.world.redactor.line(textOf(last), PREVIEW_MAX_CHARS) };
}

async function list(
  ctx: CallContext<SessionDeps>,
  params: ParamsOf<"sessions.list">,
): Promise<Result<PayloadOf<"sessions.list">>> {
  if (params.cursor !== undefined && !isSessionCursor(params.cursor)) {
    return badCursor("sessions.list");
  }
  const { settings, world } = ctx.deps;
  const sees = createGate(settings, ctx.caller, "list");
  // A caller must not find out by guessing whether a hidden parent session exists.
  const isGuess = params.spawnedBy !== undefined && !sees(params.spawnedBy);
  const page = isGuess ? { rows: [] } : await listVisible(ctx.access, ctx.viewer, filterOf(ctx, params));
  const rows = await listedRows(ctx, page.rows, params);
  const counts =
    params.includeCounts === true ? await visibleCounts(ctx.access, ctx.viewer, ctx.caller.id) : undefined;
  const sessions = [];
  for (const [at, row] of page.rows.entries()) {
    sessions.push({
      ...(rows[at] as ListedRow),
      ...optional({ derivedTitle: titleIn(ctx, params, row) }),
      ...(await lastOf(ctx, params, row)),
    });
  }
  const { model } = defaultAgent(ctx.deps.settings);
  const row = ctx.deps.models().find((one) => `${one.provider}/${one.id}` === model);
  return ok({
    ts: world.clock.now(),
    path: storePathFor(settings, ctx.caller),
    count: sessions.length,
    defaults: { ...splitModel(model), contextTokens: row?.contextWindow ?? null },
    sessions,
    ...optional({ nextCursor: page.nextCursor, counts }),
  });
}

async function resolve(
  ctx: CallContext,
  params: ParamsOf<"sessions.resolve">,
): Promise<Result<PayloadOf<"sessions.resolve">>> {
  const { key, sessionId, label, agentId, spawnedBy } = params;
  const named = [key, sessionId, label].filter((name) => name !== undefined);
  if (named.length !== 1) {
    return fail("invalid_argument", `give exactly one of key, sessionId and label, got ${named.length}`);
  }
  const strange = fail("session_not_found", "no session matches");
  const sees = createGate(ctx.deps.settings, ctx.caller, "list");
  if (spawnedBy !== undefined && !sees(spawnedBy)) return strange;
  const sessionKey = key ?? sessionId;
  const found = await resolveSession(ctx.access, ctx.viewer, "list", {
    ...optional({ sessionKey, label }),
    ...(agentId === undefined || label === undefined ? {} : { agentId }),
    ...(spawnedBy === undefined || label === undefined ? {} : { spawnedBy }),
  });
  if (!found.ok) return found;
  if (sessionId !== undefined && found.value.sessionId !== sessionId.toLowerCase()) return strange;
  if (spawnedBy !== undefined && found.value.spawnedBy !== spawnedBy) return strange;
  return ok({ ok: true, key: found.value.key });
}

async function preview(ctx: CallContext, key: string, limit: number, charsMax: number) {
  const found = await resolveSession(ctx.access, ctx.viewer, "read", { sessionKey: key });
  if (!found.ok) return { key, status: "missing" as const, items: [] };
  const messages = await lastMessages(ctx.access.db, found.value.sessionId, limit, { includeTools: false });
  const items = messages
    .map((message) => ({
      role: message.role,
      text: ctx.deps.world.redactor.line(textOf(message), charsMax),
    }))
    .filter((item) => item.text !== "");
  return { key, status: items.length === 0 ? ("empty" as const) : ("ok" as const), items };
}

async function earlier(
  ctx: CallContext,
  { key, limit = EARLIER_LIMIT_DEFAULT }: ParamsOf<"sessions.earlier">,
): Promise<Result<PayloadOf<"sessions.earlier">>> {
  const found = await resolveSession(ctx.access, ctx.viewer, "read", { sessionKey: key });
  if (!found.ok) return found;
  const rows = await earlierConversations(ctx.access.db, found.value, Math.min(limit, EARLIER_LIMIT_MAX));
  const { redactor } = ctx.deps.world;
  const texts = await firstUserTexts(
    ctx.access.db,
    rows.map(({ sessionId }) => sessionId),
  );
  const titles = new Map([...texts].map(([id, text]) => [id, redactor.line(text, TITLE_MAX_CHARS)]));
  const conversations = rows.map((row) => ({ ...row, ...optional({ title: titles.get(row.sessionId) }) }));
  return ok({ key: found.value.key, sessionId: found.value.sessionId, conversations });
}

/** Resolves a session and applies a change to it. */
async function change<T>(
  ctx: CallContext,
  key: string,
  work: (session: Session) => Promise<Result<T>>,
): Promise<Result<T>> {
  const found = await resolveSession(ctx.access, ctx.viewer, "send", { sessionKey: key });
  return found.ok ? work(found.value) : found;
}

/** Returns a row as this caller may see it. */
function shownRow(ctx: CallContext, session: Session) {
  return sessionRow(ctx.deps, session, createGate(ctx.deps.settings, ctx.caller, "list"));
}

async function search(
  ctx: CallContext<SessionDeps>,
  { limit = SEARCH_LIMIT.fallback, ...asked }: ParamsOf<"sessions.search">,
): Promise<Result<PayloadOf<"sessions.search">>> {
  if (asked.cursor !== undefined && !/^\d{1,15}$/.test(asked.cursor)) return badCursor("sessions.search");
  const { redactor } = ctx.deps.world;
  const { readWorker } = ctx.deps.engine.store;
  const hits = await searchVisible(
    { ...ctx.access, viewer: ctx.viewer, redactor, readWorker, signal: ctx.signal },
    { ...asked, limit: Math.min(limit, SEARCH_LIMIT.max) },
  );
  return hits.ok ? ok(hits.value.page) : hits;
}

async function fork(
  ctx: CallContext<SessionDeps>,
  { sessionKey, at, label }: ParamsOf<"sessions.fork">,
): Promise<Result<PayloadOf<"sessions.fork">>> {
  const read = await resolveSession(ctx.access, ctx.viewer, "read", { sessionKey });
  if (!read.ok) return read;
  const answer = ({ session: { key, sessionId }, point, leftBehind }: Forked) =>
    ({ ok: true, key, sessionId, at: point.messageId, leftBehind }) as const;
  return change(ctx, read.value.key, async (session) => {
    const request = { at, ...optional({ label }), sees: createGate(ctx.deps.settings, ctx.caller, "list") };
    return answerAfter(ctx, answer, (also) =>
      forkSession(ctx.deps, ctx.viewer, session, { ...request, also }),
    );
  });
}

async function compact(
  ctx: CallContext<SessionDeps>,
  { key, idempotencyKey }: ParamsOf<"sessions.compact">,
): Promise<Result<PayloadOf<"sessions.compact">>> {
  const { deps, caller, signal } = ctx;
  return change(ctx, key, async (session) => {
    const able = mayCompact(deps.settings, session);
    if (!able.ok) return able;
    const asked = { runId: idempotencyKey, askedBy: keyOwnerOf(caller), guest: isGuest(ctx.viewer) };
    const accepted = await sendDirect(deps, { session, ...COMPACT_INPUT, ...asked });
    // After a crash, a repeated request waits for the run of the first one.
    const isRepeat =
      accepted.ok &&
      accepted.value.run.input.compact === true &&
      accepted.value.run.sessionKey === session.key;
    const begun = isRepeat ? accepted : onlyFresh(accepted);
    if (!begun.ok) return begun;
    const { run } = begun.value;
    const ended = await untilEnded(deps.engine, run.runId, signal);
    if (ended === undefined) return fail("shutting_down", "the connection ended before the run");
    if (!ended.ok) return ended;
    const { runId, state, error, reply } = ended.value;
    const compacted = state === "ok" && (await hasCompaction(ctx.access.db, runId));
    const why = error ?? reply ?? `the run ended: ${state}`;
    const reason = compacted ? undefined : deps.world.redactor.mask(why);
    return ok({ ok: true, key: session.key, runId, compacted, ...optional({ reason }) });
  });
}

export const sessionMethods: Methods<keyof typeof SESSION_METHODS, SessionDeps> = {
  "sessions.list": { handle: list },
  "sessions.subscribe": {
    handle: async (ctx, params) => {
      if (Object.keys(params).length === 0) return ok({ subscribed: true });
      const page = await list(ctx, params);
      return page.ok ? ok({ subscribed: true, list: page.value }) : page;
    },
  },
  "sessions.describe": {
    handle: async (ctx, { key }) => {
      const found = await resolveSession(ctx.access, ctx.viewer, "list", { sessionKey: key });
      if (!found.ok) return found.code === "invalid_session_key" ? found : ok({ session: null });
      const page = await list(ctx, { keys: [found.value.key], includeArchived: true, includeGlobal: true });
      return page.ok ? ok({ session: page.value.sessions[0] ?? null }) : page;
    },
  },
  "sessions.resolve": { handle: resolve },
  "sessions.create": {
    async handle(ctx, { agentId, label, client, key: named }) {
      const answer = ({ key, sessionId }: Session) => ({ ok: true, key, sessionId }) as const;
      if (named !== undefined && client !== undefined) {
        return fail("invalid_argument", "give either key or client, not both");
      }
      return answerAfter(ctx, answer, (also) => {
        const request = { ...optional({ agentId, label }), also };
        return named === undefined
          ? createSession(ctx.deps, ctx.viewer, { ...request, ...optional({ client }) })
          : createNamed(ctx.deps, ctx.viewer, { ...request, key: named });
      });
    },
  },
  "sessions.fork": { handle: fork },
  "sessions.compact": { handle: compact },
  "sessions.earlier": { handle: earlier },
  "sessions.search": { handle: search },
  "sessions.preview": {
    async handle(ctx, { keys, limit, maxChars }) {
      const count = Math.min(limit ?? PREVIEW_LIMIT_DEFAULT, PREVIEW_LIMIT_MAX);
      const charsMax = Math.min(maxChars ?? ITEM_CHARS_DEFAULT, ITEM_CHARS_MAX);
      const previews = [];
      for (const key of new Set(keys)) {
        previews.push(await preview(ctx, key, count, charsMax));
        // A long session takes tens of milliseconds, so other work gets a turn between two sessions.
        await ctx.deps.world.gather?.();
      }
      return ok({ ts: ctx.deps.world.clock.now(), previews });
    },
  },
  "sessions.patch": {
    async handle(ctx, { key, idempotencyKey: _, ...request }) {
      const path = storePathFor(ctx.deps.settings, ctx.caller);
      const answer = (after: Session) =>
        ({ ok: true, path, key: after.key, entry: shownRow(ctx, after) }) as const;
      return change(ctx, key, async (session) => {
        const { archived, ...others } = request;
        if (archived === true && Object.keys(others).length > 0)
          return fail("invalid_argument", "archived: true allows no other field");
        return answerAfter(ctx, answer, (also) =>
          archived === true
            ? archiveSession(ctx.deps, session, also)
            : patchSession(ctx.deps, ctx.viewer, session, { ...request, also }),
        );
      });
    },
  },
  "sessions.reset": {
    async handle(ctx, { key }) {
      const answer = (after: Session) => {
        const entry = shownRow(ctx, after);
        return { ok: true, key: entry.key, sessionId: entry.sessionId, entry } as const;
      };
      return change(ctx, key, async (session) => {
        return answerAfter(ctx, answer, (also) => resetSession(ctx.deps, session, also));
      });
    },
  },
  "sessions.delete": {
    async handle(ctx, { key, deleteTranscript }) {
      const answer = (gone: string) => ({ ok: true, key: gone, deleted: true }) as const;
      return change(ctx, key, async (session) => {
        const deleted = await deleteSession(ctx.deps, session, {
          ...optional({ deleteTranscript }),
          also: (unit, gone) => ctx.remember(unit, answer(gone)),
        });
        return deleted.ok ? ok(answer(deleted.value.key)) : deleted;
      });
    },
  },
};
