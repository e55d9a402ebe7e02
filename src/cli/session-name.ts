// Finds the session that a user names in a command: by its key or session id, by its label or name, or by the
// unique beginning of one of them.
// SN1: a key or session id of an existing session always wins. An exact label or name wins over a beginning,
//      and a session that is not archived wins over an archived one.
// SN2: a beginning counts only where a person sees which session it stands for, or where the command changes
//      nothing that is lost. So a script never deletes, resets or writes to another session than it names.
// SN3: if several sessions match equally well, none is chosen: the failure lists them. Nor is one chosen if
//      more sessions contain the name than are read, unless it is a label.

import type { RequestParams } from "../contract/client/types.ts";
import type { ListedRow } from "../contract/methods/sessions.ts";
import type { PayloadOf } from "../contract/methods.ts";
import { fail, ok } from "../core/shapes/errors.ts";
import { KEY_CHARS_MAX } from "../core/shapes/session-key.ts";
import { safeLine } from "../core/text/safe-text.ts";
import type { Cli } from "./cli.ts";
import type { Link, Loose, Reply } from "./gateway-link.ts";

/** Codes with which the gateway says that a text is not the key or id of a session that the caller sees. */
const NO_KEY: readonly string[] = ["session_not_found", "invalid_session_key", "not_visible"];
/** Maximum number of pages, of rows per page and of all rows that are searched for a name. */
const PAGES_MAX = 10;
const PAGE_ROWS = 200;
const SEARCHED_MAX = PAGES_MAX * PAGE_ROWS;
const CANDIDATES_SHOWN = 10;

export interface NameOptions {
  /** True if only whole keys, labels and names count. Default: false. */
  readonly whole?: boolean;
}

/** Rank of a session of which only the beginning matches. */
const BEGINNING_RANK = 4;

type Named = Pick<ListedRow, "key" | "label" | "displayName" | "archivedAt">;

/** Returns how well a session matches a name; a smaller number is better. Undefined: it does not match. */
function rankOf({ key, label, displayName, archivedAt }: Named, name: string): number | undefined {
  const wanted = name.toLowerCase();
  const names = [label, displayName].filter((one) => one !== undefined);
  const [, inAgent = key] = /^agent:[^:]+:(.+)$/.exec(key) ?? [];
  const parts = [key, inAgent, key.slice(key.lastIndexOf(":") + 1)];
  const late = archivedAt === undefined ? 0 : 1;
  if (names.includes(name)) return late;
  const all = [...names, ...parts].map((one) => one.toLowerCase());
  if (all.includes(wanted)) return 2 + late;
  return all.some((one) => one.startsWith(wanted)) ? BEGINNING_RANK + late : undefined;
}

/** Returns the sessions that match a name best. There may be several. */
export function bestMatches<T extends Named>(
  rows: readonly T[],
  name: string,
  { whole = false }: NameOptions = {},
): T[] {
  const ranked = rows.map((row) => ({ row, rank: rankOf(row, name) ?? Number.POSITIVE_INFINITY }));
  const least = Math.min(...ranked.map(({ rank }) => rank));
  const best = whole && least >= BEGINNING_RANK ? Number.NaN : least;
  return ranked.filter(({ rank }) => rank === best && Number.isFinite(rank)).map(({ row }) => row);
}

type Wanted = Omit<Loose<RequestParams<"sessions.list">>, "limit" | "cursor">;
type SessionsPage = PayloadOf<"sessions.list">;

/**
 * Reads pages of the list of sessions until the list ends, `rows` rows or `pages` pages are read. A page can
 * have fewer rows than requested, which are `perPage`.
 */
export async function readSessions(
  link: Link,
  wanted: Wanted,
  most: { readonly rows: number; readonly pages: number; readonly perPage?: number },
): Promise<Reply<SessionsPage>> {
  let whole: SessionsPage | undefined;
  for (let pages = 0; pages < most.pages; pages += 1) {
    const left = most.rows - (whole?.sessions.length ?? 0);
    if (left <= 0) break;
    const limit = Math.min(left, most.perPage ?? left);
    const page: Reply<SessionsPage> = await link.request("sessions.list", {
      ...wanted,
      limit,
      cursor: whole?.nextCursor,
    });
    if (!page.ok) return page;
    whole = { ...page.value, sessions: [...(whole?.sessions ?? []), ...page.value.sessions] };
    if (whole.nextCursor === undefined) break;
  }
  return ok(whole as SessionsPage);
}

/** Searches the sessions for a name. Resolves with undefined if none matches. */
async function findByName(
  link: Link,
  name: string,
  options: NameOptions,
): Promise<Reply<string | undefined>> {
  const most = { rows: SEARCHED_MAX, pages: PAGES_MAX, perPage: PAGE_ROWS };
  const found = await readSessions(link, { search: name, includeArchived: true }, most);
  if (!found.ok) return found;
  const { sessions: rows, nextCursor } = found.value;
  const isWhole = nextCursor === undefined;
  if (!isWhole) {
    const labelled = await link.request("sessions.resolve", { label: name });
    if (labelled.ok) return ok(labelled.value.key);
  }
  const matches = bestMatches(rows, name, options);
  const [match] = matches;
  if (isWhole && match === undefined) return ok(undefined);
  if (isWhole && matches.length === 1) return ok(match?.key);
  const shown = matches.slice(0, CANDIDATES_SHOWN).map(({ key, label, displayName, archivedAt }) => {
    const called = label ?? displayName;
    const marks = [
      ...(called === undefined ? [] : [called]),
      ...(archivedAt === undefined ? [] : ["(archived)"]),
    ];
    return safeLine(["", key, ...marks].join("  "));
  });
  const more = matches.length > shown.length ? [`  and ${matches.length - shown.length} more`] : [];
  const said = JSON.stringify(name);
  const error = isWhole
    ? `${said} names ${matches.length} sessions.`
    : `${said} occurs in too many sessions.`;
  const hint = ["Give a key or a whole label.", ...shown, ...more].join("\n");
  return fail("label_ambiguous", error, {
    hint,
    details: { keys: matches.slice(0, CANDIDATES_SHOWN).map(({ key }) => key) },
  });
}

export async function findSession(
  link: Link,
  name: string,
  options: NameOptions = {},
): Promise<Reply<string>> {
  const resolved = await link.request("sessions.resolve", { key: name });
  if (resolved.ok) return ok(resolved.value.key);
  const text = name.trim();
  if (!NO_KEY.includes(resolved.code) || text === "" || text.length > KEY_CHARS_MAX) return resolved;
  const found = await findByName(link, text, options);
  if (!found.ok) return found;
  return found.value === undefined ? resolved : ok(found.value);
}

/**
 * Like `findSession`, for a command that may create the session: if there is none, returns the name as its
 * key. A full key (`agent:…`) is never taken as the beginning of another one.
 */
export async function findOrName(
  cli: Cli,
  link: Link,
  name: string,
  options: NameOptions = { whole: !cli.parts.isTTY },
): Promise<Reply<Destination>> {
  const resolved = await link.request("sessions.resolve", { key: name });
  if (resolved.ok) return ok({ key: resolved.value.key, isThere: true, similar: [] });
  if (!NO_KEY.includes(resolved.code)) return resolved;
  const text = name.trim();
  const isKey = text === "" || text.length > KEY_CHARS_MAX || /^agent:/i.test(text);
  const found = isKey ? ok(undefined) : await findByName(link, text, options);
  if (!found.ok) return found;
  const { closest, agents } = (resolved.details ?? {}) as Record<string, readonly string[] | undefined>;
  // The gateway lists its agents if the key names another one. Then no session can be opened.
  if (found.value === undefined && agents !== undefined) return resolved;
  if (found.value === undefined) return ok({ key: name, isThere: false, similar: closest ?? [] });
  cli.note(safeLine(`Session: ${found.value}`));
  return ok({ key: found.value, isThere: true, similar: [] });
}

interface Destination {
  readonly key: string;
  readonly isThere: boolean;
  /** Keys of sessions with a similar name, if there is none with this one. */
  readonly similar: readonly string[];
}

/**
 * Like `findOrName`, for a person's message: opens the session if there is none, and says so. A name that is
 * similar to that of a session may be a typo, so it opens a session only with `isNew`.
 */
export async function openNamed(
  cli: Cli,
  link: Link,
  name: string,
  { isNew }: { readonly isNew: boolean },
): Promise<Reply<string>> {
  const named = await findOrName(cli, link, name);
  if (!named.ok) return named;
  const { key, isThere, similar } = named.value;
  if (isThere) return ok(key);
  if (similar.length > 0 && !isNew) {
    return fail("session_not_found", `There is no session ${JSON.stringify(name)}.`, {
      hint: `Similar: ${similar.map(safeLine).join(", ")}. To open a new session of this name, add --new.`,
      details: { closest: similar },
    });
  }
  const opened = await link.request("sessions.create", { key });
  if (!opened.ok) return opened;
  cli.note(`New session: ${safeLine(opened.value.key)}`);
  return ok(opened.value.key);
}

export const SESSION = {
  "<session>": "Key, label or name of the session, or a beginning that no other session has",
};

export const namedSession = (link: Link, { session }: { readonly session: string }) =>
  findSession(link, session);

/** Maximum number of conversations in the list. It is also the highest number by which one can be chosen. */
const NUMBERED_MAX = 1000;

/** Reads the earlier conversations of a session, the newest first. */
export const readEarlier = (link: Link, key: string) =>
  link.request("sessions.earlier", { key, limit: NUMBERED_MAX });

/**
 * Returns the session and the session id of a conversation. `which`: its number in the list, its session id,
 * or undefined for the current conversation, for which no id is returned.
 */
export async function findConversation(
  link: Link,
  name: string,
  which: string | undefined,
): Promise<Reply<{ readonly sessionKey: string; readonly sessionId?: string }>> {
  const found = await findSession(link, name);
  if (!found.ok) return found;
  const sessionKey = found.value;
  if (which === undefined) return ok({ sessionKey });
  if (!/^\d{1,4}$/.test(which)) return ok({ sessionKey, sessionId: which });
  const earlier = await readEarlier(link, sessionKey);
  if (!earlier.ok) return earlier;
  const { conversations } = earlier.value;
  const chosen = conversations[Number(which) - 1];
  if (chosen !== undefined) return ok({ sessionKey, sessionId: chosen.sessionId });
  const error = `There is no earlier conversation ${which}; this session has ${conversations.length}.`;
  const hint = `List them: npx parley-gateway sessions earlier ${safeLine(sessionKey)}`;
  return fail("session_not_found", error, { hint });
}
