// Owns the destinations of text: the configured channels, the people at a destination, and the right to write
// there.
// DE1: a channel or an account that is not configured is refused when it is named; text for a destination
//      that no longer exists becomes a failed delivery that operators see. A viewer that may not write to
//      every session may write only to destinations whose people it may write to (I9). All other destinations
//      get the same refusal, whether or not they exist.
// DE3: text is sent only if the send policy allows it for its session and for the destination.
// DE4: `last` is the chat that the people of a session used last, at the time of the delivery.

import { type AccessContext, openGate } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { optional } from "../../core/optional.ts";
import { idIn, plainId } from "../../core/rules/inbound-policy.ts";
import { decideSend, type SendVerdict, sendVerdict } from "../../core/rules/send-policy.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { isSameRoute, LAST, type Route, WEBCHAT } from "../../core/shapes/route.ts";
import type { Session } from "../../core/shapes/session.ts";
import { chatTypeOf, formatKey, type ParsedKey, routeOfKey } from "../../core/shapes/session-key.ts";
import { accountOf, withAccount } from "../../core/shapes/settings/channels.ts";
import type { ChatType, Settings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { isPlainLine } from "../../core/text/label.ts";
import { getPeer } from "../../store/queries/channels/channel-peers.ts";
import { getBinding } from "../../store/queries/channels/thread-bindings.ts";
import { getSession, sessionsOfChat } from "../../store/queries/sessions/sessions.ts";
import type { Db } from "../../store/sql.ts";
import { announceRoute } from "../conversation/party.ts";

export interface NamedPlace {
  /** Default: webchat. `to` is then a session. */
  readonly channel?: string | undefined;
  readonly to: string;
  readonly accountId?: string | undefined;
  readonly threadId?: string | number | undefined;
}

const ID_CHARS_MAX = 512;

function checkId(name: string, text: string): Result<string> {
  const id = text.trim();
  if (id === "") return fail("invalid_argument", `${name} must not be empty`);
  if (id.length > ID_CHARS_MAX) {
    return fail("invalid_argument", `${name} has more than ${ID_CHARS_MAX} characters`);
  }
  if (!isPlainLine(id)) {
    return fail("invalid_argument", `${name} contains control characters or half a surrogate pair`);
  }
  return ok(id);
}

/**
 * Returns the route of a destination on a configured channel, with its account. Does not check that the
 * destination exists.
 */
export function checkPlace(
  settings: Settings,
  place: NamedPlace & { readonly channel: string },
): Result<Route> {
  const channel = place.channel.trim().toLowerCase();
  const accounts = settings.channels.filter((account) => account.channel === channel);
  const [first] = accounts;
  if (first === undefined) {
    const shown = quoted(place.channel, 60);
    const there = [WEBCHAT, ...new Set(settings.channels.map(({ channel }) => channel))].join(", ");
    return fail("channel_unknown", `no channel ${shown} is configured; configured: ${there}`);
  }
  const { accountId = first.accountId } = place;
  if (!accounts.some((account) => account.accountId === accountId)) {
    const ids = accounts.map((account) => account.accountId).join(", ");
    const shown = quoted(accountId, 60);
    return fail("channel_unknown", `the channel ${channel} has no account ${shown}; configured: ${ids}`);
  }
  // In the settings, `commands.owners` and allow lists write this prefix before an id.
  const prefix = `${channel}:`;
  const to = checkId("to", place.to.startsWith(prefix) ? place.to.slice(prefix.length) : place.to);
  if (!to.ok) return to;
  const threadId = place.threadId === undefined ? undefined : checkId("threadId", String(place.threadId));
  if (threadId?.ok === false) return threadId;
  const thread = threadId === undefined ? {} : { threadId: threadId.value };
  return ok({ channel, to: to.value, accountId, ...thread });
}

/**
 * Returns whether two routes lead to the same destination. A route without an account means the first
 * account of its channel.
 */
export function leadToSamePlace({ channels }: Settings, one: Route, other: Route): boolean {
  return isSameRoute(withAccount(channels, one), withAccount(channels, other));
}

/** Returns the possible keys of a chat's own sessions, one for each agent. */
function keysAt({ agents }: Settings, { channel, to: id, threadId }: Route): string[] {
  const rooms = (agentId: string) => [
    { form: "group", agentId, channel, id } as const,
    { form: "channel", agentId, channel, id } as const,
  ];
  const forms = ({ id: agentId }: { id: string }): ParsedKey[] => {
    if (threadId === undefined) return [...rooms(agentId), { form: "dm", agentId, channel, peer: id }];
    const kinds = ["thread", "topic"] as const;
    return rooms(agentId).flatMap((room) =>
      kinds.map((kind) => ({ ...room, thread: { kind, id: threadId } })),
    );
  };
  return agents.flatMap(forms).map(formatKey);
}

/**
 * Returns the sessions whose people read at a destination: first the sessions bound to it, then its own
 * session, then the sessions that used it last.
 */
export async function sessionsAt(db: Db, settings: Settings, route: Route): Promise<Session[]> {
  const keys = keysAt(settings, route);
  const binding = await getBinding(db, route);
  const bound = binding === undefined ? undefined : await getSession(db, binding.sessionKey);
  const chat = await sessionsOfChat(db, route, keys);
  const own = chat.filter(({ key }) => keys.includes(key));
  const used = chat.filter(({ lastRoute }) => lastRoute && leadToSamePlace(settings, lastRoute, route));
  const found = [...(bound === undefined || bound.archivedAt !== undefined ? [] : [bound]), ...own, ...used];
  return [...new Map(found.map((session) => [session.key, session])).values()];
}

/** Returns whether a route leads to one person whom an operator has approved or whom the settings name. */
export async function isKnownPeer(db: Db, settings: Settings, route: Route): Promise<boolean> {
  const { channel, to, accountId } = withAccount(settings.channels, route);
  if (accountId === undefined || route.threadId !== undefined) return false;
  const account = accountOf(settings.channels, { channel, accountId });
  // A wildcard names no person.
  if (to === "*") return false;
  if (account?.allowFrom.some((entry) => plainId(idIn(entry, channel)) === plainId(to)) === true) return true;
  return (await getPeer(db, { channel, accountId, peerId: to }))?.state === "approved";
}

/**
 * Returns the chat types that a destination may have. A rule for a chat type does not apply if the type of
 * the destination is unknown.
 */
async function chatTypesAt(
  db: Db,
  settings: Settings,
  route: Route,
  sessions: readonly Session[],
): Promise<readonly ChatType[]> {
  const types = sessions.flatMap(({ key }) => chatTypeOf(key));
  if (types.length > 0) return [...new Set(types)];
  if (route.threadId === undefined) return (await isKnownPeer(db, settings, route)) ? ["direct"] : [];
  const { threadId: _, ...chat } = route;
  const above = await sessionsAt(db, settings, chat);
  return ["thread", ...above.flatMap(({ key }) => chatTypeOf(key)).filter((type) => type !== "direct")];
}

/**
 * Returns whether the send policy allows text of this session to this destination (DE3). `isAnswer`: the text
 * answers a message from this destination, so the session counts as used there, even if it was used elsewhere
 * since.
 */
export async function leaveVerdict(
  db: Db,
  settings: Settings,
  session: Session,
  route: Route,
  isAnswer = false,
): Promise<SendVerdict> {
  const own = sendVerdict(settings, isAnswer ? { ...session, lastRoute: route } : session);
  if (!own.allowed) return own;
  const home = [session.lastRoute, routeOfKey(session.key)];
  if (home.some((place) => place !== undefined && leadToSamePlace(settings, place, route))) return own;
  // The policy of the destination's own session applies first.
  const policy = settings.session.sendPolicy;
  if (route.channel === WEBCHAT) {
    const target = await getSession(db, route.to);
    const chatTypes = target === undefined ? [] : chatTypeOf(target.key);
    const keys = [route.to];
    return decideSend({ channel: WEBCHAT, chatTypes, keys, override: target?.sendPolicy }, policy);
  }
  const sessions = await sessionsAt(db, settings, route);
  const chatTypes = await chatTypesAt(db, settings, route, sessions);
  const override = sessions[0]?.sendPolicy;
  const keys = sessions.map(({ key }) => key);
  return decideSend({ channel: route.channel, chatTypes, keys, override }, policy);
}

/**
 * Returns the session of the people at a destination, for a viewer who may write to them. Returns undefined
 * if there is no such session and the viewer may write to any destination.
 */
export async function addressee(
  ctx: AccessContext,
  viewer: Viewer,
  route: Route,
): Promise<Result<Session | undefined>> {
  const gate = openGate(ctx, viewer);
  for (const session of await sessionsAt(ctx.db, ctx.settings, route)) {
    if (await gate.admits("send", session)) return ok(session);
  }
  // Only an operator whose token covers all sessions may write to any destination.
  if (viewer.kind === "operator" && viewer.patterns === undefined && viewer.as === undefined)
    return ok(undefined);
  const shown = quoted(route.to, 60);
  return fail("not_visible", `${route.channel} ${shown} is not a chat of a session that you may write to`, {
    hint: "Name a chat of such a session, or let the token cover more sessions.",
  });
}

/** Returns the route of the destination that a caller names, if the caller may write there. */
export async function resolvePlace(
  ctx: AccessContext,
  viewer: Viewer,
  { channel = WEBCHAT, to, accountId, threadId }: NamedPlace,
): Promise<Result<Route>> {
  if (channel !== WEBCHAT && channel !== LAST) {
    const route = checkPlace(ctx.settings, { channel, to, accountId, threadId });
    if (!route.ok) return route;
    const found = await addressee(ctx, viewer, route.value);
    return found.ok ? route : found;
  }
  if (channel === LAST && (accountId !== undefined || threadId !== undefined)) {
    return fail("invalid_argument", 'channel "last" takes a session alone: its last place has all the rest');
  }
  // The target is a session: its readers read this text.
  const found = await resolveSession(ctx, viewer, "send", { sessionKey: to });
  if (!found.ok) return found;
  return ok({
    channel,
    to: found.value.key,
    ...optional({ accountId }),
    ...(threadId === undefined ? {} : { threadId: String(threadId) }),
  });
}

/** Returns the chat that the people of a session used last (DE4). */
export function lastPlace(session: Session): Route {
  return announceRoute(session) ?? { channel: WEBCHAT, to: session.key };
}

/** Returns the destination of an operator's text, and the session that records it. */
export async function destinationOf(
  ctx: AccessContext,
  viewer: Viewer,
  { sessionKey, ...named }: NamedPlace & { readonly sessionKey?: string | undefined },
): Promise<Result<{ route: Route; session: Session }>> {
  const { channel = WEBCHAT, to } = named;
  if (channel === WEBCHAT || channel === LAST) {
    const found = await resolveSession(ctx, viewer, "send", { sessionKey: sessionKey ?? to });
    if (!found.ok) return found;
    const session = found.value;
    const last = lastPlace(session);
    if (channel === LAST && last.channel !== WEBCHAT) return ok({ route: last, session });
    const route = await resolvePlace(ctx, viewer, { ...named, channel: WEBCHAT, to: session.key });
    return route.ok ? ok({ route: route.value, session }) : route;
  }
  const route = checkPlace(ctx.settings, { ...named, channel });
  if (!route.ok) return route;
  const reader = await addressee(ctx, viewer, route.value);
  if (!reader.ok) return reader;
  // The named session records the text, else the reader's session, else `main`.
  const isReader = sessionKey === undefined && reader.value !== undefined;
  const session = isReader
    ? ok(reader.value)
    : await resolveSession(ctx, viewer, "send", { sessionKey: sessionKey ?? "main" });
  return session.ok ? ok({ route: route.value, session: session.value }) : session;
}

/** The destination that a caller names for the answer of a run. */
interface NamedAnswerPlace extends Omit<NamedPlace, "to"> {
  readonly deliver?: boolean | undefined;
  readonly to?: string | undefined;
}

/** Returns the additional destination for the answer of a run, besides the transcript. */
export async function answerPlace(
  { db, settings }: AccessContext,
  viewer: Viewer,
  session: Session,
  { deliver, channel = LAST, to, accountId, threadId }: NamedAnswerPlace,
): Promise<Result<{ readonly route?: Route; readonly deliverTo?: Route }>> {
  const here = ok({ route: { channel: WEBCHAT, to: session.key } });
  if (channel === WEBCHAT) return here;
  // Clients put their default channel into every request, so the channel counts only together with `deliver`.
  if (deliver !== true) return ok({});
  const last = announceRoute(session);
  if (channel === LAST) {
    if (last === undefined) return here;
    return ok(last.channel === WEBCHAT ? {} : { deliverTo: last });
  }
  if (to === undefined && last?.channel === channel) return ok({ deliverTo: last });
  const place = checkPlace(settings, { channel, to: to ?? "", accountId, threadId });
  if (!place.ok) return place;
  const found = await addressee({ db, settings }, viewer, place.value);
  return found.ok ? ok({ deliverTo: place.value }) : found;
}
