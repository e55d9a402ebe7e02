// Owns the inbox of an MCP client: the tool `sessions_inbox`, which only MCP clients have, and notifications
// of new messages.
// Messages are redacted and within the limits of `tools.history`; omissions are stated.
// A notification has no content; each listener gets at most one per `NEWS_EVERY_MS`.

import { shownKey } from "../../access/access.ts";
import { INBOX_LIMIT } from "../../contract/tools/sessions.ts";
import { type ToolResultOf, toolSpec } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Message, textOf } from "../../core/shapes/message.ts";
import type { ToolSpec } from "../../core/shapes/tool.ts";
import { cutHistory } from "../../core/text/history-cut.ts";
import { readInbox } from "../../store/queries/sessions/inbox.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { countLimit, readArguments, textLimit } from "../../tools/arguments.ts";
import type { BasicDeps } from "../call.ts";
import type { McpClient } from "./client.ts";

const MESSAGE_ID_CHARS_MAX = 200;
const NEWS_EVERY_MS = 1_000;

export const INBOX_URI = "parley://inbox";

export const INBOX_TOOL: ToolSpec = toolSpec("sessions_inbox");

type InboxResult = ToolResultOf<"sessions_inbox">;
type InboxRow = InboxResult["messages"][number];

/** Returns one message in the client's form. */
async function rowOf(
  { settings, engine, world }: BasicDeps,
  client: McpClient,
  message: Message,
): Promise<InboxRow> {
  const { maxTextChars, maxBytes } = settings.tools.history;
  const access = { db: engine.store.db, settings };
  const {
    messages: [cut],
  } = await cutHistory([message], { maxTextChars, maxBytes }, world.redactor);
  const told = message.role === "user" ? message.provenance : undefined;
  const source = told !== undefined && "sourceSessionKey" in told ? told.sourceSessionKey : undefined;
  return {
    id: message.id,
    at: message.timestamp,
    kind: told?.kind ?? "person",
    ...(source === undefined ? {} : { from: shownKey(access, client.viewer, source) }),
    ...(told?.kind === "notice" && told.runId !== undefined ? { runId: told.runId } : {}),
    text: cut === undefined ? "" : world.redactor.mask(textOf(cut)),
  };
}

interface Wanted {
  readonly limit: number;
  readonly after?: string;
  readonly before?: string;
}

const LIMITS = {
  limit: countLimit(INBOX_LIMIT),
  after: textLimit(MESSAGE_ID_CHARS_MAX),
  before: textLimit(MESSAGE_ID_CHARS_MAX),
};

async function wantedOf(args: unknown): Promise<Result<Wanted>> {
  const read = await readArguments(INBOX_TOOL.parameters, args, LIMITS);
  if (!read.ok) return read;
  const wanted = read.value as unknown as Wanted;
  if (wanted.after === undefined || wanted.before === undefined) return ok(wanted);
  return fail("invalid_argument", "give only one of after and before");
}

/** Returns as many rows as fit: from the start of a continued page, from the end of the first one. */
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

/** Returns the messages that wait for the client. */
export async function inboxOf(
  deps: BasicDeps,
  client: McpClient,
  args: unknown,
): Promise<Result<InboxResult>> {
  const { settings, engine } = deps;
  const wanted = await wantedOf(args);
  if (!wanted.ok) return wanted;
  const { session } = client;
  const { db } = engine.store;
  const sessionKey = shownKey({ db, settings }, client.viewer, session.key);
  if (!session.external) {
    const error = `session ${sessionKey} has no inbox, since its agent handles its messages`;
    return fail("invalid_argument", error, { hint: "Read it with sessions_history." });
  }
  const page = await readInbox(db, { sessionId: session.sessionId, ...wanted.value });
  if (!page.ok) return page;
  const { after } = wanted.value;
  const forward = after !== undefined;
  const rows: InboxRow[] = [];
  for (const message of page.value.messages) rows.push(await rowOf(deps, client, message));
  const messages = within(rows, settings.tools.history.maxBytes, !forward);
  const nextAfter = messages.at(-1)?.id ?? after;
  const isCut = messages.length < rows.length;
  const older = page.value.older || (isCut && !forward);
  const nextBefore = older ? messages[0]?.id : undefined;
  return ok({
    sessionKey,
    count: messages.length,
    messages,
    ...optional({ nextAfter, nextBefore }),
    more: page.value.newer || (isCut && forward),
  });
}

/** Calls `tell` when others write into the client's session. Returns a function that stops it. */
export function onInbox(
  { engine, world }: Pick<BasicDeps, "engine" | "world">,
  client: McpClient,
  tell: () => void,
): () => void {
  const { clock, log } = world;
  const { key } = client.session;
  let nextAt = 0;
  let later: { cancel(): void } | undefined;
  const news = (): void => {
    later = undefined;
    nextAt = clock.now() + NEWS_EVERY_MS;
    tell();
  };
  const came = (): void => {
    if (later !== undefined) return;
    if (clock.now() >= nextAt) news();
    else later = clock.at(nextAt, news);
  };
  const newest = async (): Promise<string | undefined> => {
    const { db } = engine.store;
    // A reset has started another transcript since.
    const sessionId = (await getSession(db, key))?.sessionId;
    if (sessionId === undefined) return undefined;
    const page = await readInbox(db, { sessionId, limit: 1 });
    return page.ok ? page.value.messages[0]?.id : undefined;
  };
  let seen: string | undefined;
  let known = false;
  const look = async (): Promise<void> => {
    const id = await newest();
    if (known && id !== seen) came();
    seen = id;
    known = true;
  };
  const looked = (): void => {
    look().catch((error: unknown) => log.debug({ err: error }, "could not read an inbox"));
  };
  const stop = engine.bus.subscribe((event) => {
    if (event.sessionKey !== key) return;
    if (event.kind === "message" && event.message.role === "user") {
      seen = event.message.id;
      known = true;
      came();
    }
    // Other processes publish the run's event, not its message.
    if (event.kind === "run_ended") looked();
  });
  looked();
  return () => {
    stop();
    later?.cancel();
  };
}
