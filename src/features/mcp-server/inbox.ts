// Owns the inbox of an MCP client: the tool `sessions_inbox`, which only MCP clients have, and notifications
// of new messages. A message is marked as offered once it was written to the client's connection, and as
// acknowledged once the client has confirmed it (docs/DELIVERY.md).
// Messages are redacted and within the limits of `tools.history`, and an answer says what it omits.
// A notification has no content; each listener gets at most one per `NEWS_EVERY_MS`.

import { shownKey, visibleAmong } from "../../access/access.ts";
import { INBOX_ACK_MAX, INBOX_LIMIT, INBOX_WAIT_SECONDS } from "../../contract/tools/sessions.ts";
import { type ToolResultOf, toolSpec } from "../../contract/tools.ts";
import { shownMessage, sourceKeyOf } from "../../core/message-source.ts";
import { optional } from "../../core/optional.ts";
import { hasScope } from "../../core/rules/scopes.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { textOf } from "../../core/shapes/message.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { ToolSpec } from "../../core/shapes/tool.ts";
import { quoted } from "../../core/text/cut.ts";
import { cutHistory } from "../../core/text/history-cut.ts";
import { noteReading } from "../../flows/conversation/inbox-receipts.ts";
import type { BasicDeps } from "../../gateway/call.ts";
import { countUnoffered, hasUnread, marksOf } from "../../store/queries/runs/inbox-marks.ts";
import { type InboxEntry, readInbox, runsOfInbox } from "../../store/queries/sessions/inbox.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { countLimit, readArguments, textLimit } from "../../tools/arguments.ts";
import { pause } from "../../world/pause.ts";
import type { McpClient } from "./client.ts";

const MESSAGE_ID_CHARS_MAX = 200;
const NEWS_EVERY_MS = 1_000;
/** Interval at which a waiting call reads its inbox, because an event may be lost. */
const LOOK_AGAIN_MS = 10_000;

export const INBOX_URI = "parley://inbox";

export const INBOX_TOOL: ToolSpec = toolSpec("sessions_inbox");

type InboxResult = ToolResultOf<"sessions_inbox">;
type InboxRow = InboxResult["messages"][number];

/** Returns whether the arguments of `sessions_inbox` ask to wait for new messages. */
export function waitsForNews(args: Readonly<Record<string, unknown>>): boolean {
  return args.waitSeconds !== undefined && args.waitSeconds !== 0 && args.before === undefined;
}

/**
 * Converts messages to the client's form. Does not name a sender that the client may not see, nor give a
 * reply address to which the client may not send (I9).
 */
async function makeRows(
  { settings, engine, world }: BasicDeps,
  { viewer }: McpClient,
  entries: readonly InboxEntry[],
): Promise<InboxRow[]> {
  const { maxTextChars, maxBytes } = settings.tools.history;
  const access = { db: engine.store.db, settings };
  const senders = entries.flatMap(({ message }) => sourceKeyOf(message) ?? []);
  const sees = await visibleAmong(access, viewer, "list", senders);
  const mayAnswer = await visibleAmong(access, viewer, "send", senders);
  const rows: InboxRow[] = [];
  for (const { message, mark } of entries) {
    const {
      messages: [cut],
    } = await cutHistory([message], { maxTextChars, maxBytes }, world.redactor);
    const told = message.role === "user" ? message.provenance : undefined;
    const from = sourceKeyOf(shownMessage(message, sees));
    const replyTo = told?.kind === "inter_session" ? told.sourceSessionKey : undefined;
    rows.push({
      id: message.id,
      at: message.timestamp,
      kind: told?.kind ?? "person",
      ...(from === undefined ? {} : { from: shownKey(access, viewer, from) }),
      ...(replyTo === undefined || !mayAnswer(replyTo) ? {} : { replyTo: shownKey(access, viewer, replyTo) }),
      ...(mark?.inTurnAt === undefined ? {} : { acknowledged: true }),
      ...(mark !== undefined && mark.endedAt === undefined ? { awaitsAnswer: true } : {}),
      ...(told?.kind === "notice" && told.runId !== undefined ? { runId: told.runId } : {}),
      text: cut === undefined ? "" : world.redactor.mask(textOf(cut)),
    });
  }
  return rows;
}

interface Wanted {
  readonly waitSeconds: number;
  readonly ack?: readonly string[];
  readonly limit: number;
  readonly after?: string;
  readonly before?: string;
}

const LIMITS = {
  limit: countLimit(INBOX_LIMIT),
  after: textLimit(MESSAGE_ID_CHARS_MAX),
  before: textLimit(MESSAGE_ID_CHARS_MAX),
  waitSeconds: (value: unknown): Result<number> => {
    const seconds = typeof value === "number" ? value : 0;
    if (seconds >= 0) return ok(Math.min(seconds, INBOX_WAIT_SECONDS));
    return fail("invalid_argument", `waitSeconds must be 0 to ${INBOX_WAIT_SECONDS}, got ${seconds}`);
  },
  ack: (value: unknown): Result<unknown> => {
    if (!Array.isArray(value) || value.length <= INBOX_ACK_MAX) return ok(value ?? undefined);
    return fail("invalid_argument", `ack has ${value.length} ids; the maximum is ${INBOX_ACK_MAX}`);
  },
};

async function wantedOf(args: unknown): Promise<Result<Wanted>> {
  const read = await readArguments(INBOX_TOOL.parameters, args, LIMITS);
  if (!read.ok) return read;
  const wanted = read.value as unknown as Wanted;
  if (wanted.after === undefined || wanted.before === undefined) return ok(wanted);
  return fail("invalid_argument", "give only one of after and before");
}

/** Returns as many rows as fit, but at least one: the last ones if `fromEnd`, else the first ones. */
function within<T>(rows: readonly T[], maxBytes: number, fromEnd: boolean): T[] {
  const kept: T[] = [];
  let bytes = 2;
  for (const row of fromEnd ? rows.toReversed() : rows) {
    bytes += Buffer.byteLength(JSON.stringify(row)) + 1;
    if (kept.length > 0 && bytes > maxBytes) break;
    kept.push(row);
  }
  return fromEnd ? kept.reverse() : kept;
}

/** A signal and a callback for the end of a `sessions_inbox` call. */
interface InboxCall {
  /** Aborted when the client disconnects or the gateway stops. This ends the wait. */
  readonly signal: AbortSignal;
  /** Runs at the end of the exchange. `written`: the client's connection got the whole answer. */
  atEnd(action: (written: boolean) => void): void;
}

/** Marks messages as acknowledged. All ids must be in this inbox. */
async function acknowledgeIn(
  { engine }: BasicDeps,
  { viewer }: McpClient,
  { sessionId }: Session,
  ids: readonly string[],
): Promise<Result<void>> {
  if (viewer.kind === "operator" && !hasScope(viewer.scopes, "operator.write"))
    return fail("missing_scope", "acknowledging messages needs the scope operator.write");
  const runs = await runsOfInbox(engine.store.db, sessionId, ids);
  const unknown = ids.filter((id) => !runs.has(id));
  if (unknown.length > 0) {
    const names = unknown.map((id) => quoted(id, 80)).join(", ");
    return fail("message_not_found", `not in this inbox: ${names}; nothing was acknowledged`, {
      hint: "Acknowledge ids of messages that sessions_inbox returned.",
    });
  }
  await noteReading(engine, [...runs.values()], "in_turn");
  return ok(undefined);
}

/** Returns whether a waiting call has something to return. */
async function hasNews({ engine }: BasicDeps, session: Session, { after, limit }: Wanted): Promise<boolean> {
  const { db } = engine.store;
  const { key: sessionKey, sessionId } = session;
  if (limit === 0) return (await countUnoffered(db, { sessionKey, sessionId })) > 0;
  if (after === undefined) return hasUnread(db, { sessionKey, sessionId });
  const page = await readInbox(db, { sessionId, limit: 1, after });
  return !page.ok || page.value.entries.length > 0;
}

/** Resolves when there is a new message, the wait times out, or the call ends. */
async function untilNews(
  deps: BasicDeps,
  client: McpClient,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<void> {
  const { engine, world } = deps;
  const { key } = client.session;
  const until = world.clock.monotonic() + wanted.waitSeconds * 1000;
  for (;;) {
    const news = new AbortController();
    const stop = engine.bus.subscribe((event) => {
      // If another process accepted the message, only the event `run_ended` arrives in this process.
      const isNews = event.kind === "message" || event.kind === "run_ended" || event.kind === "session";
      if (isNews && event.sessionKey === key) news.abort();
    });
    try {
      const session = (await getSession(engine.store.db, key)) ?? client.session;
      const leftMs = until - world.clock.monotonic();
      if (leftMs <= 0 || signal.aborted || (await hasNews(deps, session, wanted))) return;
      const ends = AbortSignal.any([signal, news.signal]);
      await pause(world.clock, Math.min(leftMs, LOOK_AGAIN_MS), ends);
    } finally {
      stop();
    }
  }
}

/**
 * Handles a `sessions_inbox` call: acknowledges messages, waits for new ones if asked, and returns messages
 * or their number.
 */
export async function inboxOf(
  deps: BasicDeps,
  client: McpClient,
  args: Readonly<Record<string, unknown>>,
  call: InboxCall,
): Promise<Result<InboxResult>> {
  const { settings, engine } = deps;
  const read = await wantedOf(args);
  if (!read.ok) return read;
  const wanted = read.value;
  const { db } = engine.store;
  if (!client.session.external) {
    const sessionKey = shownKey({ db, settings }, client.viewer, client.session.key);
    const error = `session ${sessionKey} has no inbox, since its agent handles its messages`;
    return fail("invalid_argument", error, { hint: "Read it with sessions_history." });
  }
  if (wanted.ack !== undefined && wanted.ack.length > 0) {
    const noted = await acknowledgeIn(deps, client, client.session, wanted.ack);
    if (!noted.ok) return noted;
  }
  if (waitsForNews({ ...wanted })) await untilNews(deps, client, wanted, call.signal);
  // The session may have been reset during the wait.
  const current = { ...client, session: (await getSession(db, client.session.key)) ?? client.session };
  return wanted.limit === 0 ? countOf(deps, current) : pageOf(deps, current, wanted, call);
}

/** Returns the number of messages that were not offered yet, without offering them. */
async function countOf({ engine, settings }: BasicDeps, { viewer, session }: McpClient) {
  const { db } = engine.store;
  const { key: sessionKey, sessionId } = session;
  const count = await countUnoffered(db, { sessionKey, sessionId });
  const newest = count > 0 ? undefined : await readInbox(db, { sessionId, limit: 1 });
  const nextAfter = newest?.ok ? newest.value.entries[0]?.message.id : undefined;
  return ok({
    sessionKey: shownKey({ db, settings }, viewer, sessionKey),
    count,
    messages: [],
    ...optional({ nextAfter }),
    more: count > 0,
  });
}

async function pageOf(
  deps: BasicDeps,
  client: McpClient,
  wanted: Wanted,
  { atEnd }: InboxCall,
): Promise<Result<InboxResult>> {
  const { settings, engine } = deps;
  const { db } = engine.store;
  const { session } = client;
  const page = await readInbox(db, { sessionId: session.sessionId, ...wanted });
  if (!page.ok) return page;
  const { after } = wanted;
  const forward = after !== undefined;
  const { entries } = page.value;
  const rows = await makeRows(deps, client, entries);
  const messages = within(rows, settings.tools.history.maxBytes, !forward);
  const shown = new Set(messages.map(({ id }) => id));
  const fresh = entries.filter(({ message, mark }) => shown.has(message.id) && mark?.offeredAt === undefined);
  offerAtEnd(deps, client, fresh, atEnd);
  const nextAfter = messages.at(-1)?.id ?? after;
  const isCut = messages.length < rows.length;
  const older = page.value.older || (isCut && !forward);
  const nextBefore = older ? messages[0]?.id : undefined;
  return ok({
    sessionKey: shownKey({ db, settings }, client.viewer, session.key),
    count: messages.length,
    messages,
    ...optional({ nextAfter, nextBefore }),
    more: page.value.newer || (isCut && forward),
  });
}

/**
 * Records the messages as offered once the connection got the answer. A client with a read-only token records
 * nothing.
 */
function offerAtEnd(
  { engine, world }: BasicDeps,
  { viewer }: McpClient,
  entries: readonly InboxEntry[],
  atEnd: InboxCall["atEnd"],
): void {
  if (entries.length === 0) return;
  if (viewer.kind === "operator" && !hasScope(viewer.scopes, "operator.write")) return;
  const runIds = entries.map(({ runId }) => runId);
  atEnd((written) => {
    if (!written) return;
    noteReading(engine, runIds, "offered").catch((error: unknown) => {
      world.log.warn({ err: error }, "could not record that messages were offered; the next read records it");
    });
  });
}

/** Calls `tell` when a message for the client's session arrives. Returns a function that stops it. */
export function onInbox(
  { engine, world }: Pick<BasicDeps, "engine" | "world">,
  client: McpClient,
  tell: () => void,
): () => void {
  const { clock, log } = world;
  const { key } = client.session;
  let nextAt = Number.NEGATIVE_INFINITY;
  let later: { cancel(): void } | undefined;
  const news = (): void => {
    later = undefined;
    nextAt = clock.monotonic() + NEWS_EVERY_MS;
    tell();
  };
  const came = (): void => {
    if (later !== undefined) return;
    const leftMs = nextAt - clock.monotonic();
    if (leftMs <= 0) news();
    else later = clock.after(leftMs, news);
  };
  // Only a run that stores a message has a mark: not one that notes what the client has sent.
  const look = async (runId: string): Promise<void> => {
    if ((await marksOf(engine.store.db, [runId])).size > 0) came();
  };
  const stop = engine.bus.subscribe((event) => {
    // The run may have ended in another process. Then only this event arrives here.
    if (event.kind !== "run_ended" || event.state !== "ok" || event.sessionKey !== key) return;
    look(event.runId).catch((error: unknown) => log.debug({ err: error }, "could not read an inbox"));
  });
  return () => {
    stop();
    later?.cancel();
  };
}
